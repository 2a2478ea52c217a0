"""A live job as processes that can be killed: the driver, its JVM, executors and Python workers, found in /proc.

Everything that a job starts belongs to one session of the system (`setsid`), whatever groups its parts make, so that a
kill leaves nothing behind. Invariant: only processes that were started here are ever killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE = 300  # seconds for anything


class Life:
    """One life of a job, from its start to its end or its kill."""

    def __init__(self, folder: Path, master: str = "local[2]") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = (folder / "log").open("ab")
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # starts faster
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.job", master],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=ROOT,
            start_new_session=True,
            env={"JDK_JAVA_OPTIONS": quick, **os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        self._answers: list[dict[str, Any]] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._taken = 0
        self.next()  # that it is ready

    def begin(self, folder: Path, *, deduplicate: bool = False) -> None:
        """Have a stream run to the end of its source; `next` waits for that."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"folder": str(folder), "deduplicate": deduplicate}) + "\n")
        self._process.stdin.flush()

    def next(self) -> dict[str, Any]:
        """The next answer."""
        wait(lambda: len(self._answers) > self._taken or not self._listener.is_alive())
        if len(self._answers) <= self._taken:
            raise ChildProcessError(f"the job ended without an answer; its log is {self._log.name}")
        self._taken += 1
        return self._answers[self._taken - 1]

    @property
    def busy(self) -> bool:
        """Whether an answer is still to come."""
        return len(self._answers) <= self._taken and self._listener.is_alive()

    def kill(self) -> None:
        """SIGKILL to the driver first, then to all that it started."""
        self._process.kill()
        self._process.wait()
        until = time.monotonic() + PATIENCE
        while (left := members(self._process.pid)) and time.monotonic() < until:
            for pid in left:
                _kill(pid)
            time.sleep(0.02)
        self._over()

    def end(self) -> None:
        """Let it go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
        self._over()

    def kill_part(self, what: str) -> bool:
        """Kill one Python worker or one executor, if there is one now."""
        parts = [pid for pid in members(self._process.pid) if _is(pid, what)]
        return bool(parts) and _kill(parts[-1])

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._answers.append(json.loads(line))

    def _over(self) -> None:
        self._listener.join(10)
        self._log.close()


def wait(condition: Callable[[], bool], limit: float = PATIENCE, pause: float = 0.02) -> bool:
    """Wait until something is so; says whether it came to be."""
    until = time.monotonic() + limit
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(pause)
    return True


def members(session: int) -> list[int]:
    """The processes of a session, oldest first."""
    processes = []
    for each in Path("/proc").iterdir():
        fields = _stat(int(each.name)) if each.name.isdigit() else None
        if fields is not None and int(fields[3]) == session and fields[0] != "Z":
            processes.append(int(each.name))
    return sorted(processes)


def _is(pid: int, what: str) -> bool:
    """Whether a process is a Python `worker` (a fork of PySpark's daemon) or an `executor`."""
    if what == "executor":
        return b"CoarseGrainedExecutorBackend" in _command(pid)
    fields = _stat(pid)
    return fields is not None and all(b"pyspark.daemon" in _command(each) for each in (pid, int(fields[1])))


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _stat(pid: int) -> list[str] | None:
    """State, parent, group, session, …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return None


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
