"""The benchmark beside other engines: what is compared, and what is said where they cannot be had. Nothing is timed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bench.peers import measure
from bench.peers.cases import CASES, Case
from bench.plots import plots
from bench.report import page
from bench.run import main


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_has_matches(case: Case) -> None:
    seconds, (matches, total) = measure.ours(case, case.stream(3_000), 0)
    assert seconds > 0
    assert 0 < matches < total


def test_aggregates_narrow_the_iteration() -> None:
    counts = {case.name: measure.ours(case, case.stream(3_000), 0)[1][0] for case in CASES}
    assert counts["iteration"] > max(counts["AVG"], counts["COUNT"])


def test_without_maven_the_peers_are_left_out_with_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "mvn" else tool)
    target = tmp_path / "peers.json"
    assert main(["peers", "--quick", "--events", "2000", "--only", "AVG,absence", "--out", str(target)]) == 0
    result = json.loads(target.read_text(encoding="utf-8"))
    assert [row["skipped"] for row in result["workloads"]] == ["no `mvn` here"] * 2
    assert "| no `mvn` here |" in page({"peers": result})


def said(words: str) -> list[str]:
    """A command that is no engine and says this; what else it is given it passes over."""
    return ["sh", "-c", f"printf '{words}'"]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "classpath").write_text("", "utf-8")
    monkeypatch.setattr(measure, "BUILD", tmp_path)
    return tmp_path


def test_the_best_run_counts_and_the_first_does_not(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    runs = r"starting\nrun 5 70 1000\nrun 5 70 4000000000\nrun 5 70 2000000000\n"
    monkeypatch.setattr(measure, "JAVA", said(runs))
    assert measure.theirs("esper", ["EsperPeer"], folder / "stream", 1_000, 2, (5, 70)) == {"esper": 500}


def test_other_matches_than_ours_are_an_error(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(measure, "JAVA", said(r"run 5 70 1\nrun 5 71 1\n"))
    row = measure.theirs("flink", ["FlinkPeer"], folder / "stream", 1_000, 1, (5, 70))
    assert row == {"error": "flink finds (5, 71) (matches, sum of measures), we find (5, 70)"}


def test_a_peer_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(measure, "JAVA", ["sh", "-c", "echo no such class >&2; exit 1"])
    assert measure.theirs("esper", ["EsperPeer"], folder / "stream", 9, 1, (5, 70)) == {"error": "esper: no such class"}


def test_times_are_on_the_page() -> None:
    row = {"name": "AVG", "events": 9, "query": "SELECT *", "matches": 3, "cerite": 8_000_000, "esper": 200_000}
    result = {
        "suite": "peers", "title": "Peers", "machine": {"date": "2026-01-02"}, "commit": "abc1234", "code": "d1g35t",
        "repeats": 3, "workloads": [row | {"flink_note": "more than 600 s"}],
    }  # fmt: skip
    text = page({"peers": result})
    assert "| AVG | `SELECT *` |" in text
    assert "| AVG | 9 | 3 | 8,000 | 200 | more than 600 s |" in text
    assert "| Case | Times Esper |" in text
    assert "| AVG | 40 |" in text
    assert plots({"peers": result})["peers-times"].series == {"Esper": [40.0]}
