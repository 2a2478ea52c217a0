"""`./dev faults` (`python -m tests.chaos`): what happens to a live stream when things go wrong.

    ./dev faults                     every scenario, 25 kills: about ten minutes on two cores
    ./dev faults kills --kills 200   one scenario, as every night
    ./dev faults --short             a few kills and everything else at once: what CI runs

Prints a table; the exit code is 1 if a match was lost, reported twice or wrong anywhere.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from tests.chaos.outcome import Outcome, table
from tests.chaos.scenarios import SCENARIOS, ImpossibleError, Stage


def main() -> int:
    """Run the requested scenarios."""
    parser = argparse.ArgumentParser(
        prog="./dev faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenario", nargs="*", choices=[[], *SCENARIOS], help="all of them, unless some are named")
    parser.add_argument("--short", action="store_true", help="the short form")
    parser.add_argument("--kills", type=int, default=25, help="kills of the driver (default 25)")
    parser.add_argument("--events", type=int, default=0, help="events of a stream (default: 40 a file)")
    parser.add_argument("--seed", type=int, default=1, help="of the stream and of the moments of the kills")
    parser.add_argument("--keep", type=Path, help="work in this folder, and leave it")
    request = parser.parse_args()
    if not Path("/proc").is_dir():
        sys.exit("error: processes are found in /proc, which this system does not have")
    console = Console(soft_wrap=True)
    root = request.keep or Path(tempfile.mkdtemp(prefix="cerite-faults-"))
    names = request.scenario or (["together"] if request.short else [name for name in SCENARIOS if name != "together"])
    outcomes: list[Outcome] = []
    for name in names:
        kills = 2 if request.short else request.kills if name == "kills" else min(request.kills, 6)
        files = 3 * kills + 4
        stage = Stage(root / name, request.seed, kills, request.events or 40 * files, files)
        begun = time.perf_counter()
        try:
            outcomes.append(SCENARIOS[name](stage))
        except ImpossibleError as reason:
            console.print(f"{name}: not possible here: {reason}")
            continue
        console.print(
            f"{name}: {'as it should be' if outcomes[-1].good else 'WRONG'} ({time.perf_counter() - begun:.0f} s)"
        )
    Console(width=max(console.width, 150)).print(table(outcomes))
    if request.keep is None:
        shutil.rmtree(root, ignore_errors=True)
    return 0 if outcomes and all(each.good for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
