"""How long a newcomer waits: seconds from `pip install` to the first match in Python, on the command line, on Spark.

    python -m bench first                    everything, in new environments that are removed afterwards
    python -m bench first --ways python cli  without Spark

Each way gets an environment of its own and an empty folder for kernels. `install` has pip's downloads in it (pip's own
cache is used as it is, unless `--no-cache`), `first` is a process from its start to its end with a match, and `again`
the same once more. `silence` is the longest time for which pip, or the first process, which compiles, said nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = """
import cerite
cards = cerite.datasets.load("cards")
matches = cerite.query(cards.query).run(cards.events, time="at")
print(matches[0])
"""
SPARK = """
print("starting Spark", flush=True)
import tempfile, pathlib, pyarrow.parquet as pq
import cerite
from cerite import spark
cards = cerite.datasets.load("cards")
with tempfile.TemporaryDirectory() as folder:
    path = str(pathlib.Path(folder) / "cards.parquet")
    pq.write_table(cards.events, path)
    session = spark.session(conf={"spark.ui.showConsoleProgress": "true"})
    print("Spark runs", flush=True)
    print(spark.match(session.read.parquet(path), cards.query, time="at").first())
    session.stop()
"""


@dataclass(frozen=True)
class Way:
    """What is installed, and the command that ends with a match; `{bin}` is the environment's folder of programs."""

    extras: str
    command: Sequence[str]


WAYS = {
    "python": Way("", ("{bin}/python", "-c", PYTHON)),
    "cli": Way("[cli]", ("{bin}/cerite", "demo", "cards")),
    "spark": Way("[spark,java]", ("{bin}/python", "-c", SPARK)),
}


@dataclass(frozen=True)
class Waited:
    """A process: how long it took, and the longest time for which it said nothing."""

    seconds: float
    silence: float


@dataclass(frozen=True)
class First:
    """What a newcomer waits for, one way."""

    way: str
    install: Waited
    first: Waited
    again: Waited


def watched(command: Sequence[str], env: Mapping[str, str] | None = None) -> Waited:
    """Run a command to its end and listen to what it says; its output is shown where it fails."""
    began = last = time.monotonic()
    silence, said = 0.0, bytearray()
    with (
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT) as process,
        selectors.DefaultSelector() as heard,
    ):
        assert process.stdout is not None
        heard.register(process.stdout, selectors.EVENT_READ)
        while True:
            heard.select()
            part = os.read(process.stdout.fileno(), 1 << 16)
            now = time.monotonic()
            silence, last = max(silence, now - last), now
            if not part:
                break
            said += part
    if process.returncode:
        raise SystemExit(f"{' '.join(command)[:200]} failed:\n{said.decode(errors='replace')[-4_000:]}")
    return Waited(round(now - began, 1), round(silence, 1))


def measured(name: str, folder: Path, *, cache: bool) -> First:
    """One way, in an environment of its own."""
    way, home = WAYS[name], folder / name
    venv.create(home, with_pip=True)
    programs = home / ("Scripts" if sys.platform == "win32" else "bin")
    more = () if cache else ("--no-cache-dir",)
    install = watched((f"{programs}/python", "-m", "pip", "install", *more, f"{ROOT}{way.extras}"))
    env = {**os.environ, "NUMBA_CACHE_DIR": str(home / "kernels"), "PYTHONUNBUFFERED": "1"}
    for setting in ("PYTHONPATH", "CERITE_QUIET"):
        env.pop(setting, None)
    command = [part.replace("{bin}", str(programs)) for part in way.command]
    return First(name, install, watched(command, env), watched(command, env))


def table(results: Sequence[First]) -> str:
    """The measurements for people.

    >>> print(table([First("python", Waited(20.0, 1.0), Waited(9.5, 2.5), Waited(1.5, 1.5))]))
    way      install    first    again  silence while installing  and compiling
    python    20.0 s    9.5 s    1.5 s                     1.0 s          2.5 s
    """
    lines = ["way      install    first    again  silence while installing  and compiling"]
    for each in results:
        times = f"{each.install.seconds:6.1f} s {each.first.seconds:6.1f} s {each.again.seconds:6.1f} s"
        lines.append(f"{each.way:<7} {times} {each.install.silence:23.1f} s {each.first.silence:12.1f} s")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench first", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--no-cache", action="store_true", help="download everything")
    parser.add_argument("--json", type=Path, help="write the measurements there, too")
    request = parser.parse_args(arguments)
    results = []
    with tempfile.TemporaryDirectory(prefix="cerite-first-") as folder:
        for name in request.ways:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            results.append(measured(name, Path(folder), cache=not request.no_cache))
    print(table(results))
    if request.json is not None:
        request.json.write_text(json.dumps([asdict(each) for each in results], indent=1) + "\n", "utf-8")
    return 0
