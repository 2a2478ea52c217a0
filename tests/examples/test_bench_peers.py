"""The benchmark beside other engines: what is compared, and what is said where they cannot be had. Nothing is timed."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cerite
from bench.peers import engines, measure
from bench.peers.cases import CASES, Case
from bench.peers.engines import BUILDS, Engine, NoPeerError
from bench.plots import PEERS, plots
from bench.report import page
from bench.run import main
from cerite.language import parse_wayeb

BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_has_matches(case: Case) -> None:
    seconds, (matches, total) = measure.ours(case, case.stream(3_000), 0)
    assert seconds > 0
    assert 0 < matches < total


def test_conditions_narrow_what_is_matched() -> None:
    counts = {case.name: measure.ours(case, case.stream(3_000), 0)[1][0] for case in CASES}
    assert counts["iteration"] > max(counts["AVG"], counts["COUNT"])
    assert counts["sequence"] > counts["comparison"]


def without_maven(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Esper and FlinkCEP cannot be had, and nothing is written into the tree."""
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "mvn" else tool)
    monkeypatch.setattr(measure, "BUILD", folder)
    for build in BUILDS:
        monkeypatch.delenv(build.variable, raising=False)


def test_without_maven_the_packages_are_left_out_with_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_maven(monkeypatch, tmp_path)
    target = tmp_path / "peers.json"
    assert main(["peers", "--quick", "--events", "2000", "--only", "AVG,absence", "--out", str(target)]) == 0
    result = json.loads(target.read_text(encoding="utf-8"))
    assert [row["skipped"] for row in result["workloads"]] == ["no `mvn` here"] * 2
    assert "| no `mvn` here |" in page({"peers": result})


def said(words: str) -> list[str]:
    """A command that is no engine and says this; what else it is given it passes over."""
    return ["sh", "-c", f"printf '{words}'"]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(measure, "BUILD", tmp_path)
    monkeypatch.setattr(engines, "BUILD", tmp_path)
    return tmp_path


def test_the_best_run_counts_and_the_first_does_not() -> None:
    runs = r"starting\nrun 5 70 1000\nrun 5 70 4000000000\nrun 5 70 2000000000\n"
    assert measure.theirs("esper", said(runs), 1_000, (5, 70)) == {"esper": 500}


def test_other_matches_than_ours_are_an_error() -> None:
    row = measure.theirs("flink", said(r"run 5 70 1\nrun 5 71 1\n"), 1_000, (5, 70))
    assert row == {"error": "flink finds (5, 71) (matches, sum of measures), we find (5, 70)"}
    row = measure.theirs("wayeb", said(r"run 5 - 1\nrun 6 - 1\n"), 1_000, (5, 70), "flink fails")
    assert row == {"error": "flink fails; wayeb finds (6, None) (matches, sum of measures), we find (5, 70)"}


def test_an_engine_without_measures_is_held_to_its_matches() -> None:
    assert measure.theirs("wayeb", said(r"run 9 - 1\nrun 5 - 1000000000\n"), 1_000, (5, 70)) == {"wayeb": 1_000}
    assert measure.theirs("core_limit", said(r"run 1 2 3\nrun 2 9 1000000000\n"), 7, None) == {"core_limit": 7}


def test_a_peer_that_fails_says_why() -> None:
    command = ["sh", "-c", "echo no such class >&2; exit 1"]
    assert measure.theirs("esper", command, 9, (5, 70)) == {"error": "esper: no such class"}
    assert measure.theirs("esper", said("nothing"), 9, (5, 70)) == {"error": "esper tells of no run"}


def test_a_peer_without_the_query_is_not_asked() -> None:
    def command(case: Case, stream: Path, runs: int) -> list[str] | None:
        assert stream.read_text("utf-8").startswith("0,")
        return None if case.name == "AVG" else said(r"run 0 0 1\n" * runs)

    rows = list(measure.rows(500, 1, [Engine("core", "1", command)], "AVG,COUNT"))
    assert "error" not in rows[0]
    assert rows[1]["error"].startswith("core finds (0, 0)")


def test_times_are_on_the_page() -> None:
    row = {"name": "AVG", "events": 9, "query": "SELECT *", "matches": 3, "cerite": 8_000_000, "esper": 200_000}
    result = {
        "suite": "peers", "title": "Peers", "machine": {"date": "2026-01-02"}, "commit": "abc1234", "code": "d1g35t",
        "repeats": 3, "workloads": [row | {"flink_note": "more than 600 s"}],
    }  # fmt: skip
    text = page({"peers": result})
    assert "- AVG: `SELECT *`" in text
    assert "| AVG | 9 | 3 | 8,000 | 200 | more than 600 s |" in text
    assert "| Case | Times Esper |" in text
    assert "| AVG | 40 |" in text
    assert plots({"peers": result})["peers-times"].series == {"Esper": [40.0]}


def test_windows_of_the_peers_are_a_millisecond_wider_than_ours() -> None:
    case = BY_NAME["sequence"]
    assert case.query.endswith("WITHIN 499 milliseconds")
    assert case.core_query == "SELECT * FROM S WHERE (A ; B ; C) WITHIN 500 [at] CONSUME BY NONE"
    assert case.wayeb_pattern == (
        "#(;(IsEventTypePredicate(A),IsEventTypePredicate(B),IsEventTypePredicate(C))){window:500}{windowType:time}"
    )
    assert "within(500 milliseconds)" in str(case.esper)


@pytest.mark.parametrize("case", [case for case in CASES if case.core], ids=lambda case: case.name)
def test_what_core_is_told_means_what_cerite_runs(case: Case) -> None:
    table = case.stream(2_000)
    theirs = str(case.core_query).replace(f"WITHIN {case.window} [at]", f"WITHIN {case.window - 1} [at]")
    assert cerite.query(theirs).run(table).count() == measure.ours(case, table, 0)[1][0]


@pytest.mark.parametrize("case", [case for case in CASES if case.wayeb], ids=lambda case: case.name)
def test_what_wayeb_is_told_means_what_cerite_runs(case: Case) -> None:
    table = case.stream(2_000)
    theirs = str(case.wayeb_pattern).replace(f"window:{case.window}", f"window:{case.window - 1}")
    query = cerite.query(parse_wayeb(theirs))
    assert query.run(table, time="at").count() == measure.ours(case, table, 0)[1][0]


PYCER = """
class PyIntValue:
    def __init__(self, value): self.value = value

class PyEvent:
    def __init__(self, kind, attributes, time): self.kind, self.attributes = kind, attributes

class Named:
    def __init__(self, id, name): self.id, self.name = id, name

class PyOfflineServer:
    def declare_stream(self, text):
        names = [line.split()[1] for line in text.splitlines() if line.startswith("EVENT")]
        self.events_info = [Named(*each) for each in enumerate(names)]
        return self
    def add_query(self, query): assert "A : B:+ : C" in query
    def send_events(self, events): self.events = events
    def get_output(self):
        shown = [f"(id: {e.kind} attributes: [{' '.join(str(v.value) for v in e.attributes)} ])" for e in self.events]
        return f"[0,2], ({' '.join(shown)} )\\n\\n"
"""


def test_the_driver_of_core_feeds_the_stream_and_reads_what_is_found(tmp_path: Path) -> None:
    (tmp_path / "pycer.py").write_text(PYCER, "utf-8")
    (tmp_path / "pycer.of-no-python.so").touch()
    stream = tmp_path / "stream.csv"
    stream.write_text("0,A,3,500\n1,B,4,7\n2,B,4,8\n3,C,4,9\n", "utf-8")
    engine, limited = engines.core(tmp_path)
    command = engine.command(BY_NAME["iteration"], stream, 2)
    assert command is not None
    assert limited.command(BY_NAME["iteration"], stream, 2) == [*command[:-2], f"{command[-2]} LIMIT 1", "ABC"]
    assert not limited.all_matches
    assert command[0] == sys.executable
    assert measure.theirs("core", command, 4, (1, 502)).keys() == {"core"}
    assert engine.command(BY_NAME["AVG"], stream, 2) is None


@pytest.fixture
def jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that is taken for a jar, by a javac that takes everything."""
    (tmp_path / "javac").write_text("#!/bin/sh\nexit 0\n", "utf-8")
    (tmp_path / "javac").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    path = tmp_path / "engine.jar"
    path.touch()
    return path


def test_wayeb_is_told_the_pattern_in_a_file_and_whether_it_has_registers(jar: Path, tmp_path: Path) -> None:
    (engine,) = engines.wayeb(jar)
    command = engine.command(BY_NAME["comparison"], tmp_path / "comparison.csv", 4)
    assert command is not None
    assert command[-5:] == [
        "WayebPeer", str(tmp_path / "comparison.csv"), "4", str(tmp_path / "comparison.sre"), "registers",
    ]  # fmt: skip
    pattern = (tmp_path / "comparison.sre").read_text("utf-8")
    assert pattern == str(BY_NAME["comparison"].wayeb_pattern)
    assert '^(IsEventTypePredicate(C),GTAttr(v,"x"))' in pattern
    assert (engine.command(BY_NAME["COUNT"], tmp_path / "COUNT.csv", 4) or [])[-1] == "plain"
    assert engine.command(BY_NAME["absence"], tmp_path / "absence.csv", 4) is None


def test_core_in_java_has_no_contiguous_operators(jar: Path, tmp_path: Path) -> None:
    (engine,) = engines.core_java(jar)
    commands = {case.name: engine.command(case, tmp_path / "x.csv", 1) for case in CASES}
    assert {name for name, command in commands.items() if command} == {"sequence", "combinations"}
    assert (commands["sequence"] or [])[-2:] == [str(BY_NAME["sequence"].core_query), "ABCD"]


@pytest.mark.parametrize(("engine", "words"), [
    (engines.core, "pycer, is not there"),
    (engines.core_java, "no such file"),
    (engines.wayeb, "no such file"),
])  # fmt: skip
def test_a_build_that_is_not_there_is_an_error(
    engine: Callable[[Path], list[Engine]], words: str, tmp_path: Path
) -> None:
    with pytest.raises(NoPeerError, match=words):
        engine(tmp_path)


def test_the_version_is_the_commit_of_the_clone_that_holds_the_build(tmp_path: Path) -> None:
    (tmp_path / "pycer.so").touch()
    assert engines.core(tmp_path)[0].version == "of unknown version"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@y"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    assert re.fullmatch(r"commit [0-9a-f]{7,}", engines.core(tmp_path)[0].version)


def test_a_build_that_does_not_fit_says_so(jar: Path, tmp_path: Path) -> None:
    (tmp_path / "javac").write_text("#!/bin/sh\necho package engine does not exist >&2\nexit 1\n", "utf-8")
    with pytest.raises(NoPeerError, match="WayebPeer does not compile against it:\npackage engine does not exist"):
        engines.wayeb(jar)


def test_a_path_is_named_by_an_option_or_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without_maven(monkeypatch, tmp_path)
    assert engines.given(argparse.Namespace(core=None, core_java=None, wayeb=None)) == []
    (tmp_path / "pycer.so").touch()
    monkeypatch.setenv("CERITE_PEER_CORE", str(tmp_path))
    named = engines.given(argparse.Namespace(core=None, core_java=None, wayeb=None))
    assert [each.name for each in named] == ["core", "core_limit"]
    assert main(["peers", "--quick", "--wayeb", str(tmp_path / "nothing.jar")]) == 2
    assert "nothing.jar: no such file" in capsys.readouterr().out


def test_every_engine_has_a_name_on_the_page_and_an_option_in_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert {build.name for build in BUILDS} <= set(PEERS)
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(build.option in shown and build.variable in shown for build in BUILDS)
