"""Matches for people: tables with values, timelines, pictures of queries; all of them small."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

import cerite
from cerite.api import timeline
from cerite.errors import ArgumentError, MissingExtraError
from tests.command import cerite as command

CARDS = cerite.datasets.load("cards", rows=2_000)
MATCHES = cerite.query(CARDS.query).run(CARDS.events, time="at")
SALES = pa.table({"type": ["SELL", "BUY", "BUY"], "id": [7, 7, 7], "price": [3.5, 4.25, 5.0], "at": [0, 10, 20]})


def rendered(matches: cerite.Matches, width: int = 200) -> str:
    """The table of a terminal."""
    console = Console(width=width, record=True, quiet=False)
    with console.capture() as shown:
        console.print(matches)
    return shown.get()


def heads(matches: cerite.Matches) -> list[str]:
    """The heads of the table."""
    return [str(column.header) for column in matches.table().columns]


# ------------------------------------------------------------ tables
def test_a_table_shows_times_keys_and_values() -> None:
    assert heads(MATCHES) == ["start_time", "end_time", "card", "probe", "large"]
    probe = MATCHES[0].probe[0]
    for shown in (rendered(MATCHES), MATCHES._repr_html_()):
        assert f"country={probe['country']} shop={probe['shop']} amount={probe['amount']}" in shown
        assert str(probe["at"])[:19] in shown
        assert str(probe["card"]) in shown


def test_an_event_type_is_left_out_where_variables_show_its_events() -> None:
    query = "SELECT * FROM S WHERE SELL AS x ; {} PARTITION BY [id]"
    assert heads(cerite.query(query.format("BUY AS y")).run(SALES)) == ["start", "end", "id", "x", "y"]
    assert heads(cerite.query(query.format("BUY")).run(SALES)) == ["start", "end", "id", "BUY", "x"]
    chosen = cerite.query("SELECT SELL, x FROM S WHERE SELL AS x ; BUY").run(SALES)
    assert heads(chosen) == ["start", "end", "SELL", "x"]


def test_types_are_shown_where_they_differ() -> None:
    either = cerite.query("SELECT x[type, price] FROM S WHERE (SELL OR BUY) AS x").run(SALES)
    assert "type=SELL price=3.5" in rendered(either)
    assert "type" not in rendered(cerite.query("SELECT x[type, price] FROM S WHERE BUY AS x").run(SALES))


def test_measures_and_complex_events_are_shown_too() -> None:
    measured = cerite.query("SELECT x.price AS low, COUNT(y) AS n FROM S WHERE SELL AS x ; BUY+ AS y").run(SALES)
    assert heads(measured) == ["start", "end", "low", "n"]
    plain = cerite.query("SELECT * FROM S WHERE SELL ; BUY").run(SALES, semantics="complex-events")
    assert heads(plain) == ["start", "end", "events"]
    assert "price=3.5" in plain._repr_html_()


def test_a_push_shows_values() -> None:
    stream = cerite.query("SELECT * FROM S WHERE SELL AS x ; BUY AS y").stream(SALES.schema, time="at")
    pushed = stream.push(SALES)
    assert heads(pushed) == ["start_time", "end_time", "x", "y"]
    assert "id=7 price=4.25" in rendered(pushed)
    stream.push([{"type": "SELL", "id": 1, "price": 1.0, "at": 30}])
    assert "id=7 price=4.25" in pushed._repr_html_()


def test_cells_stay_short() -> None:
    many = pa.table({"type": ["A"] * 500, "v": range(500), "text": ["x" * 900] * 500})
    shown = rendered(cerite.query("SELECT x FROM S WHERE A:{400} AS x").run(many.slice(0, 400)))
    assert "(400)" in shown
    assert len(shown) < 20_000
    assert "x" * 60 not in shown


def test_text_of_the_data_is_no_markup() -> None:
    sly = pa.table({"type": ["A"], "v": ["[bold]<script>alert(1)</script>"]})
    matches = cerite.query("SELECT * FROM S WHERE A AS `[red]`").run(sly)
    assert "<script>" not in matches._repr_html_()
    assert "[bold]<script>" in rendered(matches)
    assert "[red]" in rendered(matches)


def test_the_command_shows_values_and_draws(tmp_path: Path) -> None:
    command("demo", "cards", "--rows", "2000", "--save", str(tmp_path))
    run = ("run", str(tmp_path / "cards.ceql"), str(tmp_path / "cards.parquet"), "--time", "at")
    shown = command(*run, "--show", "1", "--plot", "-").stdout
    assert "probe" in shown
    assert "l large" in shown
    page = tmp_path / "cards.html"
    assert "drawn in" in command(*run, "--plot", str(page)).stdout
    assert "vega" in page.read_text("utf-8")[:2_000]
    assert "--plot draws in addition" in command(*run, "--count", "--plot", "-", code=1).stderr


# ------------------------------------------------------------ timelines
def test_a_timeline_in_a_terminal_is_text() -> None:
    matches = cerite.query("SELECT * FROM S WHERE SELL AS x ; BUY+ AS y PARTITION BY [id]").run(SALES, time="at")
    assert str(matches.plot()).splitlines() == [
        "3 matches",
        "0  7  x───────────────────y                     0 to 10",
        "0  7  x──────────────────────────────────────y  0 to 20",
        "0  7  x───────────────────y──────────────────y  0 to 20",
        "x x, y y",
    ]
    assert str(cerite.query("SELECT * FROM S WHERE BUY ; SELL").run(SALES).plot()) == "0 matches"


def test_a_timeline_has_lanes_matches_and_events_beside_them() -> None:
    drawn = MATCHES.plot()
    assert drawn.lanes == tuple(str(match.probe[0]["card"]) for match in MATCHES)
    assert [len(match.marks) for match in drawn.matches] == [2, 2]
    assert drawn.matches[0].marks[0].names[0] == "probe"
    assert drawn.beside
    assert {lane for lane, _ in drawn.beside} <= set(drawn.lanes)
    first, last = MATCHES[0].probe[0]["at"], MATCHES[1].large[0]["at"]
    assert all(first <= at <= last for _, at in drawn.beside)


@pytest.mark.parametrize("ending", ["svg", "png", "html", "json"])
def test_a_timeline_is_written_in_every_form(ending: str, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    path = tmp_path / f"cards.{ending}"
    MATCHES.plot(path)
    begin = path.read_bytes()[:400]
    assert {"svg": b"<svg", "png": b"\x89PNG", "html": b"<html", "json": b"{"}[ending] in begin
    if ending == "json":
        chart = json.loads(path.read_text("utf-8"))
        assert [layer["mark"]["type"] for layer in chart["layer"]] == ["circle", "line", "circle"]
        assert chart["title"]["text"] == "2 matches"


def test_a_notebook_gets_a_chart_and_text() -> None:
    bundle = MATCHES.plot()._repr_mimebundle_()
    assert bundle["text/plain"].startswith("2 matches")
    assert len(bundle) > 1


def test_a_timeline_of_a_million_events_is_small_and_says_so(tmp_path: Path) -> None:
    number = np.arange(1_000_000)
    events = pa.table({"type": pa.array(["A", "B"]).take(pa.array(number % 2)), "k": number // 2 % 100, "n": number})
    close = cerite.query("SELECT * FROM S WHERE A AS x : B AS y WITHIN 2 EVENTS").run(events)
    assert close.plot(limit=30).notes[:1] == ("the first 30 matches (there are more)",)
    assert close.count() == 500_000
    assert close.plot(limit=30).notes[:1] == ("the first 30 of 500,000 matches",)
    keyed = cerite.query("SELECT * FROM S WHERE A AS x : B AS y PARTITION BY [k] WITHIN 2 EVENTS").run(events)
    drawn = keyed.plot(limit=100, lanes=5)
    assert len(drawn.lanes) == len(drawn.matches) == 5
    assert "95 of them, in other lanes, are not drawn" in drawn.caption
    ends = cerite.query("SELECT * FROM S WHERE A AS x : B AS y FILTER x[n < 20 OR n >= 999980] WITHIN 2 EVENTS")
    path = tmp_path / "million.json"
    drawn = ends.run(events).plot(path)
    assert len(drawn.matches) == 20
    assert drawn.notes == ("20 matches", "1,000 of 1,000,000 events of these lanes are drawn as well")
    assert len(drawn.beside) == timeline.MOST_EVENTS
    assert path.stat().st_size < 200_000


def test_a_long_match_shows_its_ends() -> None:
    drawn = cerite.query("SELECT x FROM S WHERE A:{200} AS x").run(pa.table({"type": ["A"] * 200})).plot()
    assert [mark.at for mark in drawn.matches[0].marks] == [*range(20), *range(180, 200)]
    assert drawn.notes[-1] == "of a long match the first 20 and last 20 events"


@pytest.mark.parametrize(
    "times",
    [
        [datetime(2024, 1, 1, 0, 0, each, tzinfo=timezone.utc) for each in range(3)],
        ["2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z", "2024-01-01T00:00:02Z"],
        [0.5, 1.5, 2.5],
        [datetime(2024, 1, 1 + each).date() for each in range(3)],
    ],
)
def test_any_time_is_an_axis(times: list[object]) -> None:
    pytest.importorskip("altair")
    matches = cerite.query("SELECT * FROM S WHERE SELL AS x ; BUY AS y").run(
        SALES.set_column(3, "at", [times]), time="at"
    )
    drawn = matches.plot()
    assert len(drawn.matches) == 2
    assert str(drawn).startswith("2 matches\n")
    assert drawn.chart.to_dict()["title"]["text"] == "2 matches"


def test_matches_that_are_read_once_or_pushed_are_drawn_without_events_beside_them() -> None:
    query = cerite.query("SELECT * FROM S WHERE SELL AS x ; BUY AS y")
    assert len(query.run(SALES.to_reader(), time="at").plot().matches) == 2
    pushed = query.stream(SALES.schema, time="at").push(SALES).plot()
    assert len(pushed.matches) == 2
    assert pushed.beside == ()


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"`cards.gif` is not a picture file"):
        MATCHES.plot(tmp_path / "cards.gif")
    for wrong in ({"limit": 0}, {"limit": "x"}, {"limit": 10_000}, {"lanes": True}):
        with pytest.raises(ArgumentError, match="is not a number from 1 to"):
            MATCHES.plot(**wrong)


def test_without_the_extra_text_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent(module: str) -> None:
        raise MissingExtraError(module)

    monkeypatch.setattr(timeline, "load", absent)
    assert list(MATCHES.plot()._repr_mimebundle_()) == ["text/plain"]
    with pytest.raises(MissingExtraError):
        MATCHES.plot(tmp_path / "cards.svg")


# ------------------------------------------------------------ queries
def test_a_query_is_drawn_in_every_form(tmp_path: Path) -> None:
    query = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y")
    assert query.draw() is query.automaton
    for ending, begin in (("mmd", "flowchart LR"), ("dot", "digraph automaton"), ("txt", "state ")):
        query.draw(tmp_path / f"q.{ending}")
        assert (tmp_path / f"q.{ending}").read_text("utf-8").startswith(begin)
    with pytest.raises(ArgumentError, match=r"`q.gif` is not a picture file"):
        query.draw(tmp_path / "q.gif")
