"""Bundled streams: the same seed gives the same events, and the query finds exactly what was planted."""

from __future__ import annotations

import runpy
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rich.console import Console

import cerite
from cerite import datasets
from cerite.cli.demo import demo
from cerite.errors import ArgumentError
from tests.command import cerite as command

LOOSER = {  # what finds the near misses as well
    "cards": ("WITHIN 10 minutes", "WITHIN 30 minutes", "> 500 AND country != probe.country", "> 300"),
    "logins": ("WITHIN 1 minute", "WITHIN 10 minutes", "{5,}", "{4,}"),
    "homes": ("WITHIN 2 minutes", "WITHIN 5 minutes", "0.5 * high", "0.7 * high"),
    "clicks": ("WITHIN 30 minutes", "WITHIN 25 minutes"),
    "taxi": (
        "WITHIN 2 hours",
        "WITHIN 5 hours",
        "pickup = on.dropoff AND dropoff = away.pickup",
        "pickup = on.dropoff",
    ),
    "trades": ("1.03 * first.price", "first.price"),
}


def matches_of(data: datasets.Dataset, query: str) -> set[tuple[int, ...]]:
    """The positions of the matches of a query."""
    return {match.positions for match in cerite.query(query).run(data.events, time=data.time)}


@pytest.mark.parametrize("name", datasets.NAMES)
@pytest.mark.parametrize("rows", [100, 137, 3_000, 20_000])
def test_the_query_finds_exactly_what_was_planted(name: str, rows: int) -> None:
    for seed in range(3):
        data = datasets.load(name, rows=rows, seed=seed)
        assert data.events.num_rows == rows
        assert len(data.planted) == max(1, rows // 1_000)
        matches = cerite.query(data.query).run(data.events, time=data.time)
        assert [match.positions for match in matches] == list(data.planted)


@pytest.mark.parametrize("name", datasets.NAMES)
def test_there_are_near_misses(name: str) -> None:
    data = datasets.load(name, rows=10_000)
    query = data.query
    for strict, loose in zip(LOOSER[name][::2], LOOSER[name][1::2], strict=True):
        assert strict in query
        query = query.replace(strict, loose)
    assert len(matches_of(data, query)) > len(data.planted) + 3


@pytest.mark.parametrize("name", datasets.NAMES)
def test_the_seed_decides(name: str) -> None:
    data, again = datasets.load(name, rows=500, seed=7), datasets.load(name, rows=500, seed=7)
    assert data.events.equals(again.events)
    assert data.planted == again.planted
    assert not data.events.equals(datasets.load(name, rows=500, seed=8).events)


@pytest.mark.parametrize("name", ["cards", "logins", "clicks", "trades"])
def test_times_rise_and_keys_are_skewed(name: str) -> None:
    data = datasets.load(name)
    at = data.events[data.time].cast(pa.int64()).to_numpy()
    assert (at[1:] >= at[:-1]).all()
    assert len(set((at[1:] - at[:-1]).tolist())) > 1_000
    keys = pc.value_counts(data.events.column(1)).field("counts").to_pylist()
    assert max(keys) > 3 * sum(keys) / len(keys)


def test_what_cannot_be_loaded_is_refused() -> None:
    with pytest.raises(ArgumentError, match="there is no dataset 'card'") as error:
        datasets.load("card")
    assert error.value.hint == "did you mean `cards`?"
    for wrong in ({"rows": 5}, {"rows": 2.5}, {"rows": True}, {"seed": -1}, {"seed": "x"}):
        with pytest.raises(ArgumentError, match="must be a whole number of at least"):
            datasets.load("cards", **wrong)


@pytest.mark.parametrize("name", datasets.NAMES)
def test_the_demo_says_what_it_finds(name: str) -> None:
    printed = command("demo", name, "--rows", "1000").stdout
    assert "1 match, exactly those that were planted" in printed
    assert datasets.load(name).query in printed
    assert f"cerite.datasets.load({name!r})" in printed


def test_the_demo_saves_before_it_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_short(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(Console, "print", cut_short)
    with pytest.raises(BrokenPipeError):
        demo("cards", rows=1000, seed=1, show=3, save=str(tmp_path / "demo"), out=Console(), err=Console())
    assert sorted(each.name for each in (tmp_path / "demo").iterdir()) == ["cards.ceql", "cards.parquet"]


def test_the_demo_leaves_files_that_run_takes(tmp_path: Path) -> None:
    folder = tmp_path / "try"
    printed = command("demo", "--rows", "2000", "--save", str(folder)).stdout
    line = next(line for line in printed.splitlines() if line.startswith("saved; next: cerite "))
    assert command(*line.removeprefix("saved; next: cerite ").split(), "--count").stdout == "2\n"
    assert "exists already" in command("demo", "--rows", "2000", "--save", str(folder), code=1).stderr


def test_rooms_are_there_without_an_import_of_their_own() -> None:
    assert cerite.datasets is datasets
    assert "datasets" in dir(cerite)


def test_the_example_of_a_late_stream_tells_what_was_planted(capsys: pytest.CaptureFixture[str]) -> None:
    late = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "late.py"))["main"](3_000)
    assert late == 3
    shown = capsys.readouterr().out
    assert "3 reported of 3 that were planted" in shown
    assert ", 30 twice, 0 late" in shown
