"""`cerite warm-up` leaves nothing to be compiled that takes time: datasets' queries then run without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cerite.cli import warm_up
from tests.command import cerite as command

ROOT = Path(__file__).parents[2]


def test_every_step_is_reported_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERITE_QUIET", "0")
    done = command("warm-up")
    lines = done.stdout.splitlines()
    assert [line.rpartition(":")[0] for line in lines[:-1]] == [
        f"{number}/{len(warm_up.STEPS)} {step.name}" for number, step in enumerate(warm_up.STEPS, 1)
    ]
    assert lines[-1].startswith("ready after ")
    assert done.stderr == ""
    assert os.environ["CERITE_QUIET"] == "0"


def test_where_nothing_can_be_kept_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "writable", lambda place: False)
    assert "no folder for compiled kernels can be written" in command("warm-up", code=1).stderr


@pytest.mark.nightly
def test_after_it_no_query_compiles_for_long(tmp_path: Path) -> None:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "CERITE_QUIET": "", "PYTHONPATH": str(ROOT)}

    def run(*arguments: str) -> str:
        words = [sys.executable, "-m", "cerite", *arguments]
        return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stderr

    run("warm-up", "--all")
    kernels = sorted(tmp_path.rglob("*.kernel"))
    assert len(kernels) > 10
    for name in ("cards", "logins", "homes", "clicks", "taxi", "trades"):
        assert run("demo", name, "--rows", "1000") == ""
    further = {path.name.partition("-")[0] for path in set(tmp_path.rglob("*.kernel")).difference(kernels)}
    assert further <= {"cerite.engine.results.match_ids.write_ids"}  # follows the types of columns, and takes no time
