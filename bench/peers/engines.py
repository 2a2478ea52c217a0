"""The other engines, each as a command for a case. None of their code is here: src and drivers hold what feeds them.

Esper and FlinkCEP are fetched and their drivers compiled by Maven (pom.xml). CORE and Wayeb are not published as
packages: they take part when the path of a build is given, and their drivers are compiled against that build.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.peers.cases import Case

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "bench" / "peers"
OPENED = ("java.base/java.util", "java.base/java.lang", "java.base/java.time")  # what Flink's serializers look into
JAVA = ("java", "-Xmx4g", "-XX:+UseSerialGC", *(f"--add-opens={each}=ALL-UNNAMED" for each in OPENED))
SECONDS = 600  # that a peer may take for one case, and Maven for fetching


@dataclass(frozen=True)
class Engine:
    """A peer: the key of its figures, its version, and the command of a case, None where it has no such query.

    The command runs as often as it is told and prints `run MATCHES SUM NANOSECONDS` for each run, SUM - if it has none.
    One that gives `all_matches` must give ours.
    """

    name: str
    version: str
    command: Callable[[Case, Path, int], list[str] | None]
    all_matches: bool = True


class NoPeerError(Exception):
    """A build that was named and cannot be used."""


@dataclass(frozen=True)
class Build:
    """An engine of which a build is given: its option, the environment variable instead of it, and what the path is."""

    name: str
    option: str
    variable: str
    path: str
    engines: Callable[[Path], list[Engine]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """An option for every engine of which a build can be given."""
    for build in BUILDS:
        parser.add_argument(build.option, type=Path, metavar="PATH", dest=build.name,
                            help=f"peers: {build.path} (or {build.variable})")  # fmt: skip


def here(request: argparse.Namespace) -> tuple[list[Engine], str | None]:
    """Every engine that can run here, and why Esper and FlinkCEP cannot, if so; NoPeerError if a path is of no use."""
    builds = given(request)
    packages, reason = fetched()
    return [*builds, *packages], reason


def given(request: argparse.Namespace) -> list[Engine]:
    """The engines of which a path is given, by option or environment; NoPeerError if one cannot be used."""
    paths = [(build, getattr(request, build.name) or os.environ.get(build.variable)) for build in BUILDS]
    return [engine for build, path in paths if path for engine in build.engines(Path(path).resolve())]


def fetched() -> tuple[list[Engine], str | None]:
    """Esper and FlinkCEP, and None, or why they cannot be had here."""
    reason = _built()
    if reason is not None:
        return [], reason
    versions = dict(re.findall(r"<(\w+)\.version>([^<]+)<", (HERE / "pom.xml").read_text("utf-8")))
    classpath = f"{BUILD / 'classes'}:{(BUILD / 'classpath').read_text('utf-8').strip()}"

    def java(driver: str, words: Callable[[Case], list[str] | None]) -> Callable[[Case, Path, int], list[str] | None]:
        return lambda case, stream, runs: _java(classpath, driver, stream, runs, words(case))

    return [
        Engine("esper", versions["esper"], java("EsperPeer", lambda case: [case.esper] if case.esper else None)),
        Engine("flink", versions["flink"], java("FlinkPeer", lambda case: [case.name, str(case.window)])),
    ], None


def _java(classpath: str, driver: str, stream: Path, runs: int, words: list[str] | None) -> list[str] | None:
    return None if words is None else [*JAVA, "-cp", classpath, driver, str(stream), str(runs), *words]


def _built() -> str | None:
    """Fetch the peers and compile their drivers; None, or why that cannot be done."""
    for tool in ("mvn", "java", "javac"):
        if shutil.which(tool) is None:
            return f"no `{tool}` here"
    goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={BUILD / 'classpath'}"]
    command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), f"-Dpeers.build={BUILD}", *goals]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "packages cannot be fetched in time"
    errors = [line for line in run.stdout.splitlines() if line.startswith("[ERROR]")]
    return None if run.returncode == 0 else " ".join(errors[:1]) or "Maven fails"


def core(path: Path) -> list[Engine]:
    """CORE in C++, of a folder with its Python module; also with one match an event at most: it writes them as text."""
    folder = path.parent if path.is_file() else path
    if not any(folder.glob("pycer*.so")) and not any(folder.glob("pycer*.pyd")):
        raise NoPeerError(f"{path}: CORE's Python module, pycer, is not there")

    def command(case: Case, stream: Path, runs: int, *, limit: str = "") -> list[str] | None:
        driver = [sys.executable, str(HERE / "drivers" / "core_peer.py"), str(folder), str(stream), str(runs)]
        return None if case.core_query is None else [*driver, f"{case.core_query}{limit}", case.types]

    version = _commit(folder)
    limited = Engine("core_limit", version, partial(command, limit=" LIMIT 1"), all_matches=False)
    return [Engine("core", version, command), limited]


def core_java(path: Path) -> list[Engine]:
    """CORE in Java, of its jar with dependencies. It has no contiguous operators."""
    classpath = _compiled(path, "CoreJavaPeer")

    def command(case: Case, stream: Path, runs: int) -> list[str] | None:
        query = case.core_query
        words = None if query is None or ":" in query else [query, case.types]
        return _java(classpath, "CoreJavaPeer", stream, runs, words)

    return [Engine("core_java", _commit(path.parent), command)]


def wayeb(path: Path) -> list[Engine]:
    """Wayeb, of its jar with dependencies."""
    classpath = _compiled(path, "WayebPeer")

    def command(case: Case, stream: Path, runs: int) -> list[str] | None:
        if case.wayeb_pattern is None:
            return None
        pattern = stream.with_suffix(".sre")
        pattern.write_text(case.wayeb_pattern, "utf-8")
        kind = "registers" if '"' in case.wayeb_pattern else "plain"
        return _java(classpath, "WayebPeer", stream, runs, [str(pattern), kind])

    return [Engine("wayeb", _commit(path.parent), command)]


BUILDS = (
    Build("core", "--core", "CERITE_PEER_CORE", "the folder of CORE's module pycer, built for this Python", core),
    Build("core_java", "--core-java", "CERITE_PEER_CORE_JAVA", "the jar of CORE in Java, with dependencies", core_java),
    Build("wayeb", "--wayeb", "CERITE_PEER_WAYEB", "the jar of Wayeb, with dependencies", wayeb),
)


def _compiled(jar: Path, driver: str) -> str:
    """The class path of a driver that is compiled against a jar."""
    if not jar.is_file():
        raise NoPeerError(f"{jar}: no such file")
    if shutil.which("javac") is None:
        raise NoPeerError(f"{jar}: no `javac` here, which compiles what feeds it")
    classes = BUILD / driver
    sources = [HERE / "src" / "Event.java", HERE / "src" / "Timed.java", HERE / "drivers" / f"{driver}.java"]
    run = subprocess.run(
        ["javac", "-nowarn", "-d", str(classes), "-cp", str(jar), *map(str, sources)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode != 0:
        raise NoPeerError(f"{jar}: {driver} does not compile against it:\n{run.stderr.strip()[:2000]}")
    return f"{classes}:{jar}"


def _commit(folder: Path) -> str:
    """The commit of the clone in which a build lies, which is not ours."""
    command = ["git", "-C", str(folder), "rev-parse", "--show-toplevel", "--short", "HEAD"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    top, _, commit = run.stdout.strip().partition("\n")
    unknown = run.returncode != 0 or Path(top) == HERE.parents[1]
    return "of unknown version" if unknown else f"commit {commit}"
