"""One measurement in a process of its own: `python -m bench.worker KIND NAME EVENTS REPEATS` prints a row as JSON."""

from __future__ import annotations

import json
import subprocess
import sys

from bench.pinning import pin_here, pinned_environment

TIME_LIMIT = 1800


def measured_apart(kind: str, name: str, events: int, repeats: int) -> dict[str, object]:
    """Start the process and read its row, which says what went wrong, if anything did."""
    command = [sys.executable, "-m", "bench.worker", kind, name, str(events), str(repeats)]
    try:
        done = subprocess.run(
            command, env=pinned_environment(), capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"name": name, "events": events, "error": f"took more than {TIME_LIMIT} s"}
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        return {"name": name, "events": events, "error": last[0] if last else f"exit code {done.returncode}"}
    row: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return row


def main() -> None:
    """The process itself."""
    kind, name, events, repeats = sys.argv[1:]
    pin_here()
    if kind == "growth":
        from bench.growth import measure_growth

        row = measure_growth(int(events), int(repeats))
    elif kind == "registers":
        from bench.register_measure import measure_registers

        row = measure_registers(name, int(events), int(repeats))
    else:
        from bench.measure import measure
        from bench.workloads import workloads

        known = {each.name: each for each in workloads()}
        row = measure(known[name], int(events), int(repeats))
    print(json.dumps(row))


if __name__ == "__main__":
    main()
