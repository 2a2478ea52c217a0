"""Processor time on Spark: `python -m bench.spark_processor [--events 3000000] [--only S3,Q3,…] [--ways tasks,spark]`.

For a machine that is not quiet, where elapsed times mean little. Counting in Parquet in random order is given as a
multiple of the floor (Spark reading and filtering the same rows, and counting them) in the same run, by the processor
time of Java and all Python processes together; the shares of Java, the workers and the driver are also shown. The
measurements take turns, first some rounds to warm up and then some that count; the least of each counts. Results are
JSON lines, which `bench.spark --publish` publishes; what people read goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.spark import floor
from bench.spark_cases import TIME, queries, unordered_folder
from cerite import spark
from cerite.spark.api import Reading

WAYS: dict[str, Reading] = {"tasks": "auto", "spark": "spark"}
_TICK = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Busy:
    """Seconds of processor time: of Java, of Python workers, of this process."""

    java: float
    workers: float
    driver: float

    @property
    def whole(self) -> float:
        """All of it."""
        return self.java + self.workers + self.driver

    def since(self, before: Busy) -> Busy:
        """The time that was added."""
        return Busy(self.java - before.java, self.workers - before.workers, self.driver - before.driver)


def busy() -> Busy:
    """How long this process and all below it have been busy so far."""
    known = {int(path.name): _process(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
    mine, java, workers = os.getpid(), 0.0, 0.0
    for pid, process in known.items():
        if process is not None and pid != mine and _below(pid, mine, known):
            name, _, seconds = process
            java, workers = (java + seconds, workers) if name == "java" else (java, workers + seconds)
    return Busy(java, workers, time.process_time())


def _process(path: Path) -> tuple[str, int, float] | None:
    """Name, parent and processor time of a process, with that of its children that are over; None if it is."""
    try:
        text = (path / "stat").read_text()
    except OSError:
        return None
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return name, int(rest[1]), sum(map(int, rest[11:15])) * _TICK


def _below(pid: int, root: int, known: dict[int, tuple[str, int, float] | None]) -> bool:
    while pid > 1:
        process = known.get(pid)
        if process is None:
            return False
        pid = process[1]
        if pid == root:
            return True
    return False


def least(calls: dict[str, Callable[[], object]], warm: int, repeats: int) -> dict[str, Busy]:
    """The least processor time of each call, of some runs in turn."""
    runs: dict[str, list[Busy]] = {name: [] for name in calls}
    for _ in range(warm + repeats):
        for name, call in calls.items():
            before = busy()
            call()
            runs[name].append(busy().since(before))
    return {name: min(each[warm:], key=lambda one: one.whole) for name, each in runs.items()}


def row(name: str, events: int, times: dict[str, Busy]) -> dict[str, Any]:
    """A result as `bench.spark_report` reads it."""
    shares = {way: [round(each, 2) for each in (busy.java, busy.workers, busy.driver)] for way, busy in times.items()}
    return {"processor": name, "events": events} | shares


def main() -> int:
    """Measure and print a line for every query and way."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark_processor", description=__doc__)
    parser.add_argument("--events", default="3000000", help="stream lengths, separated by commas")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--only", default="S3,Q3,Q3 by key,registers", help="queries, separated by commas")
    parser.add_argument("--ways", default="tasks", help="who reads: tasks, spark")
    parser.add_argument("--warm", type=int, default=2, help="rounds that do not count")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=Path("build/bench/spark"), help="folder for the streams")
    request = parser.parse_args()
    warnings.simplefilter("ignore")
    session = spark.session(request.master, conf={"spark.driver.memory": "6g"})
    for events in map(int, request.events.split(",")):
        df = session.read.parquet(unordered_folder(request.data, events))
        for name in request.only.split(","):
            text = queries()[name]
            calls: dict[str, Callable[[], object]] = {"floor": floor(df, text)}
            for way in request.ways.split(","):
                calls[way] = partial(spark.count, df, text, time=TIME, read=WAYS[way])
            times = least(calls, request.warm, request.repeats)
            print(json.dumps(row(name, events, times)), flush=True)
            for way, each in times.items():
                print(f"{name:10} {events:>11,} {way:6} {each.whole / times['floor'].whole:5.2f} × floor: "
                      f"{each.whole:5.2f} s = Java {each.java:.2f} + workers {each.workers:.2f} + "
                      f"driver {each.driver:.2f}", file=sys.stderr, flush=True)  # fmt: skip
    session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
