"""How long newcomers wait, and what they see: from `pip install` to the first match, and the tutorial line by line.

    python -m bench first                        everything, in new environments that are removed afterwards
    python -m bench first --ways python cli      without Spark
    python -m bench first --publish              into bench/results/first.json, docs/benchmarks.md and docs/fresh.md

Each way gets an environment of its own and an empty folder for kernels. `install` includes pip's downloads (pip's own
cache is used as it is, unless `--no-cache`), `first` is a process from its start to its end with a match, and `again`
is the same once more. `import` is a process that imports cerite and ends, the least of some. `silence` is the longest
time without output from pip, or from the first process, which compiles.
The README's main command creates its environment itself: its output until pip is done counts as `install`.
The part of the output that is kept names no folder and no machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import selectors
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench import publish

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
TUTORIAL = """
import doctest, pathlib, sys

real = sys.stdout  # a doctest takes its place while lines run

def say(text):
    real.write(text)
    real.flush()

class Copied(doctest.DocTestRunner):  # as if it were copied into an interpreter: the lines, then what they print
    def report_start(self, out, test, example):
        say("".join(f"{'...' if k else '>>>'} {line}" for k, line in enumerate(example.source.splitlines(True))))
    def report_success(self, out, test, example, got):
        say(got)

page = pathlib.Path("docs/tutorial.md").read_text("utf-8")
runner = Copied(optionflags=doctest.ELLIPSIS)
runner.run(doctest.DocTestParser().get_doctest(page, {}, "tutorial", None, 0), out=say)
sys.exit(bool(runner.failures))
"""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NOISE = re.compile(
    r"\s*$|[━╸╺]|Looking in |Collecting |Downloading |Using cached|Requirement already|Processing |Obtaining |Building "
    r"|Created |Stored |Saved |Successfully built|Installing (build|backend) |Getting |Preparing |Checking "
    r"|WARNING: Using incubator|Setting default log|To adjust logging"
)
_INSTALLING, _INSTALLED = "Installing collected packages", "Successfully installed"
IMPORTS = 5  # processes, of which the fastest counts
_LONGEST = 110  # characters that are kept of a line


@dataclass(frozen=True)
class Way:
    """What is installed, and the command that ends with a match; `{bin}` is the environment's folder of programs."""

    title: str
    extras: str
    shown: str
    command: Sequence[str]


WAYS = {
    "demo": Way("the README's main command", "", "./dev demo", ("./dev", "demo")),
    "python": Way("Python", "", "python first.py", ("{bin}/python", "-c", PYTHON)),
    "cli": Way("command line", "[cli]", "cerite demo cards", ("{bin}/cerite", "demo", "cards")),
    "spark": Way("Spark", "[spark,java]", "python first_on_spark.py", ("{bin}/python", "-c", SPARK)),
    "tutorial": Way("the tutorial, line by line", "[cli,pandas]", "python", ("{bin}/python", "-c", TUTORIAL)),
}


@dataclass(frozen=True)
class Waited:
    """A process: how long it took, its longest time without output, and what it printed when."""

    seconds: float
    silence: float
    said: tuple[tuple[float, str], ...] = ()


def watched(command: Sequence[str], env: Mapping[str, str] | None = None) -> Waited:
    """Run a command to its end and record its output, which is shown if the command fails."""
    began = time.monotonic()
    heard, said, rest = [0.0], list[tuple[float, str]](), b""
    with (
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT) as process,
        selectors.DefaultSelector() as selector,
    ):
        assert process.stdout is not None
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            selector.select()
            part = os.read(process.stdout.fileno(), 1 << 16)
            heard.append(time.monotonic() - began)
            *lines, rest = (rest + part).split(b"\n")
            said += [
                (round(heard[-1], 1), line.decode(errors="replace")) for line in (*lines, *([] if part else [rest]))
            ]
            if not part:
                break
    if process.returncode:
        output = "\n".join(line for _, line in said)
        raise SystemExit(f"{' '.join(command)[:200]} failed:\n{output[-4_000:].strip()}")
    silence = max(later - earlier for earlier, later in pairwise(heard))
    return Waited(round(heard[-1], 1), round(silence, 1), tuple(said))


def measured(name: str, folder: Path, *, cache: bool) -> dict[str, Any]:
    """One way, in an environment of its own."""
    way, home = WAYS[name], folder / name
    env = {**os.environ, "NUMBA_CACHE_DIR": str(home / "kernels"), "PYTHONUNBUFFERED": "1"}
    for setting in ("PYTHONPATH", "CERITE_QUIET"):
        env.pop(setting, None)
    if not cache:
        env["PIP_NO_CACHE_DIR"] = "1"
    programs = home / ("Scripts" if sys.platform == "win32" else "bin")
    if name == "demo":
        env |= {"VENV": str(home), "PYTHON": sys.executable}
        install = None
    else:
        venv.create(home, with_pip=True)
        install = watched((f"{programs}/python", "-m", "pip", "install", f"{ROOT}{way.extras}"), env)
    command = [part.replace("{bin}", str(programs)) for part in way.command]
    first, again = watched(command, env), watched(command, env)
    kept = row(name, install, first, again, {str(home): ".venv", str(folder): "…"})
    return kept | {"import_s": importing(f"{programs}/python", env)}


def importing(python: str, env: Mapping[str, str] | None = None) -> float:
    """The least time of a process that imports cerite and ends; one more before them leaves compiled sources."""
    times = []
    for _ in range(IMPORTS + 1):
        began = time.perf_counter()
        subprocess.run((python, "-c", "import cerite"), env=env, cwd=ROOT, check=True)
        times.append(time.perf_counter() - began)
    return round(min(times[1:]), 2)


def row(name: str, install: Waited | None, first: Waited, again: Waited, folders: Mapping[str, str]) -> dict[str, Any]:
    """What is kept of a way: times, and a transcript without names of folders or machines."""
    way = WAYS[name]
    typed = way.shown if install is None else f"pip install '.{way.extras}' && {way.shown}"
    ready = 0.0 if install is not None else next((at for at, line in first.said if _INSTALLED in line), 0.0)
    unpacking = next((at for at, line in first.said if _INSTALLING in line), 0.0)
    said = [*((at, line) for at, line in (install.said if install else ()) if _INSTALLED in line), *first.said]
    return {
        "name": name, "title": way.title, "typed": typed,
        "install_s": install.seconds if install else ready,
        "first_s": round(first.seconds - ready, 1), "again_s": again.seconds,
        "install_silence_s": install.silence if install else None, "silence_s": first.silence,
        "after_download_s": round(first.seconds - unpacking, 1) if install is None else None,
        "transcript": transcript(said, folders),
    }  # fmt: skip


def transcript(said: Sequence[tuple[float, str]], folders: Mapping[str, str]) -> list[tuple[float, str]]:
    """The output of a process, with seconds, without colours, pip's details and the names of folders and machine.

    >>> transcript([(0.1, "Collecting numpy"), (2.0, "[Stage 1:>  ]\\rok in /tmp/x/kernels")], {"/tmp/x": "…"})
    [(2.0, 'ok in …/kernels')]
    """
    names = {**folders, str(ROOT): ".", str(Path.home()): "~", platform.node(): "host", tempfile.gettempdir(): "…"}
    lines = []
    for at, line in said:
        plain = _COLOURS.sub("", line.rstrip("\r").rpartition("\r")[2])
        for name, instead in names.items():
            plain = plain.replace(name, instead) if len(name) > 2 else plain
        if not _NOISE.match(plain.lstrip(" ")):
            lines.append((at, plain.rstrip() if len(plain) <= _LONGEST else f"{plain[:_LONGEST]} …"))
    return lines


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The measurements as a table to read.

    >>> times = {"install_s": 20.0, "first_s": 9.5, "again_s": 1.5, "install_silence_s": 1.0, "silence_s": 2.5}
    >>> print(table([{"name": "cli", **times, "import_s": 0.25}]))
    way       install    first    again   import  silence while installing  and compiling
    cli        20.0 s    9.5 s    1.5 s   0.25 s                     1.0 s          2.5 s
    """
    lines = ["way       install    first    again   import  silence while installing  and compiling"]
    for each in rows:
        quiet = "" if each["install_silence_s"] is None else f"{each['install_silence_s']:.1f} s"
        times = f"{each['install_s']:6.1f} s {each['first_s']:6.1f} s {each['again_s']:6.1f} s"
        lines.append(f"{each['name']:<8} {times} {each['import_s']:6.2f} s {quiet:>25} {each['silence_s']:12.1f} s")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench first", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--no-cache", action="store_true", help="download everything")
    parser.add_argument("--json", type=Path, help="write the measurements there, too")
    parser.add_argument("--publish", action="store_true", help="keep them in bench/results and render the docs")
    request = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    result = publish.result("first", "From pip install to the first match", None, rows)
    with tempfile.TemporaryDirectory(prefix="cerite-first-") as folder:
        for name in request.ways:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            rows.append(measured(name, Path(folder), cache=not request.no_cache))
    print(table(rows))
    if request.json is not None:
        publish.write(result, request.json)
    if request.publish:
        publish.publish(result)
    return 0
