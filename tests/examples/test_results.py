"""The forms a result can take: frames, files, tables for people."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import cerite
from cerite.core.errors import StreamError

EVENTS = pa.table({"type": ["A", "B", "B"], "v": [1, 2, 3]})
MATCHES = cerite.query("SELECT * FROM S WHERE A AS x ; B+ AS y").run(EVENTS)


def test_frames_hold_the_same_matches() -> None:
    table = MATCHES.to_arrow()
    assert MATCHES.count() == table.num_rows == 3
    assert MATCHES.to_pandas()["end"].tolist() == MATCHES.to_polars()["end"].to_list() == table["end"].to_pylist()
    assert sorted(MATCHES.to_polars()["y"].to_list()) == sorted(table["y"].to_pylist()) == [[1], [1, 2], [2]]


def test_files_hold_the_same_matches(tmp_path: Path) -> None:
    assert MATCHES.to_parquet(tmp_path / "m.parquet") == 3
    assert pq.read_table(tmp_path / "m.parquet").equals(MATCHES.to_arrow())
    assert MATCHES.to_csv(tmp_path / "m.csv") == 3
    assert (tmp_path / "m.csv").read_text().splitlines()[0] == "start,end,positions,A,B,x,y"
    assert MATCHES.to_jsonl(tmp_path / "m.jsonl", events=True) == 3
    assert '"y":[{"type":"B","v":2}]' in (tmp_path / "m.jsonl").read_text().splitlines()[0]


def test_tables_for_people() -> None:
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(MATCHES)
    assert "start" in shown.get()
    html = MATCHES._repr_html_()
    assert html.count("<tr>") == 4
    assert (
        "<th>events</th>"
        in cerite.query("SELECT * FROM S WHERE A").run(EVENTS, semantics="complex-events")._repr_html_()
    )


def test_matches_are_true_if_there_is_one() -> None:
    assert MATCHES
    assert not cerite.query("SELECT * FROM S WHERE B ; A").run(EVENTS)


def test_whether_there_is_a_match_is_known_at_the_first() -> None:
    powers = cerite.query("SELECT * FROM S WHERE A+").run(pa.table({"type": ["A"] * 300}))
    assert powers
    assert powers[7].positions


def test_a_source_that_is_read_once_is_not_used_up_by_asking_whether_there_is_a_match() -> None:
    query = cerite.query("SELECT * FROM S WHERE A AS x ; B+ AS y")
    matches = query.run(EVENTS.to_reader())
    assert matches
    assert matches
    assert "can be read only once" in repr(matches)
    assert list(matches) == list(MATCHES)
    assert (matches.count(), len(matches)) == (3, 3)
    assert not query.run(EVENTS.slice(0, 1).to_reader())
    assert query.run(EVENTS.to_reader()).count() == 3


def test_matches_have_a_length_and_are_found_by_index_and_slice() -> None:
    every = list(MATCHES)
    assert len(MATCHES) == len(every) == 3
    assert [MATCHES[k] for k in range(-3, 3)] == every + every
    for start in (None, 0, 1, 2, 5, -1, -2, -5):
        for stop in (None, 0, 1, 3, 9, -1, -3):
            for step in (None, 1, 2, -1, -2):
                assert MATCHES[start:stop:step] == every[start:stop:step]
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"there is no match {index}: there are 3"):
            MATCHES[index]


def test_more_matches_than_a_list_can_hold_are_counted() -> None:
    powers = cerite.query("SELECT * FROM S WHERE A+").run(pa.table({"type": ["A"] * 300}))
    for hold in (len, list):
        with pytest.raises(StreamError, match=r"use count\(\)"):
            hold(powers)
    assert powers.count() == 2**300 - 1


NAMES = ("start", "End", "positions", "match", "id", "start_time", "end_time", "events", "start_")
CLASHES = "SELECT * FROM S WHERE " + " ; ".join(f"A AS {name}" for name in NAMES)
COLUMNS = ("A", "End_", "end_time_", "events_", "id", "match_", "positions_", "start__", "start_", "start_time_")


def test_variables_called_like_a_column_of_results_get_an_underscore_in_every_form(tmp_path: Path) -> None:
    import pandas as pd
    import polars as pl

    matches = cerite.query(CLASHES).run(pa.table({"type": ["A"] * 9}))
    columns = ["start", "end", "positions", *COLUMNS]
    assert (
        matches.to_arrow().column_names == list(matches.to_pandas().columns) == matches.to_polars().columns == columns
    )
    matches.to_parquet(tmp_path / "m.parquet")
    matches.to_csv(tmp_path / "m.csv")
    assert list(pd.read_parquet(tmp_path / "m.parquet").columns) == pl.read_csv(tmp_path / "m.csv").columns == columns
    assert matches.to_arrow().select(["start", "start__", "start_"]).to_pylist() == [
        {"start": 0, "start__": [0], "start_": [8]}
    ]
    assert matches[0].variables["start"] == (0,)
    assert matches[0]["End"] == [{"type": "A"}]


def test_variables_keep_clear_of_the_columns_of_the_partition() -> None:
    events = pa.table({"type": ["A", "A"], "name": ["m", "m"]})
    matches = cerite.query("SELECT * FROM S WHERE A AS name ; A PARTITION BY [name]").run(events)
    assert matches.columns == ("start", "end", "positions", "A", "name_")


def test_a_match_gives_the_events_of_a_variable() -> None:
    match = MATCHES[1]
    assert match["x"] == match.x == [{"type": "A", "v": 1}]
    assert match.y == [EVENTS.to_pylist()[position] for position in match.variables["y"]]
    optional = cerite.query("SELECT * FROM S WHERE A ; B? AS y ; B AS z").run(EVENTS)
    assert [] in [each.y for each in optional]
    shown = cerite.query("SELECT x[v], y FROM S WHERE A AS x ; B AS y").run(EVENTS)[0]
    assert (shown.x, shown["y"]) == ([{"v": 1}], [{"type": "B", "v": 2}])


def test_a_variable_that_a_match_does_not_have_is_refused_with_the_nearest() -> None:
    with pytest.raises(KeyError, match="the match has no variable `X`"):
        MATCHES[0]["X"]
    with pytest.raises(AttributeError, match="did you mean `x`"):
        MATCHES[0].X  # noqa: B018
    assert not hasattr(MATCHES[0], "nothing")
    with pytest.raises(StreamError, match="does not know its data"):
        cerite.Match(0, 1, (0, 1))["x"]


def test_matches_can_be_copied_and_pickled() -> None:
    match = cerite.Match.of(0, 1, [("x", 0), ("y", 1)])
    assert copy.deepcopy(match) == pickle.loads(pickle.dumps(match)) == match


def test_printing_matches_shows_the_first_of_them() -> None:
    assert str(MATCHES) == repr(MATCHES)
    said, head, *rows = repr(MATCHES).splitlines()
    assert (said, head) == ("3 matches", "start  end  A    B  x    y")
    assert sorted(rows) == ["    0    1  0    1  0    1", "    0    2  0    2  0    2", "    0    2  0  1 2  0  1 2"]
    assert repr(cerite.query("SELECT * FROM S WHERE B ; A").run(EVENTS)) == "0 matches"
    powers = cerite.query("SELECT * FROM S WHERE A+").run(pa.table({"type": ["A"] * 300}))
    assert repr(powers).startswith("more than 10 matches (count() counts them), the first 10:")
    assert powers.count()
    assert repr(powers).startswith(f"{2**300 - 1:,} matches, the first 10:")
    assert "<caption>3 matches</caption>" in MATCHES._repr_html_()


def test_printing_reads_no_more_than_a_first_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cerite.api.batch.PREVIEWED", 1)
    matches = cerite.query("SELECT * FROM S WHERE A").run(EVENTS)
    assert repr(matches).startswith("1 match in the first 1 events (count() reads on)")
    assert matches.count() == 1
    assert repr(matches).startswith("1 match\n")


def test_matches_that_cannot_be_read_still_have_a_text() -> None:
    wrong = cerite.query("SELECT * FROM S WHERE A").run(pa.table({"type": ["A", "A"], "at": [2, 1]}), time="at")
    assert "cannot be read: `at` decreases" in repr(wrong)


UNSORTED = pa.table({"type": ["B", "A", "B", "A"], "at": [4, 3, 2, 1]})


def test_sorted_data_keeps_the_rows_of_the_input(tmp_path: Path) -> None:
    import polars as pl

    query = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y")
    pq.write_table(UNSORTED, tmp_path / "events.parquet")
    for data in (UNSORTED, pl.from_arrow(UNSORTED), UNSORTED.to_pylist(), tmp_path / "events.parquet"):
        matches = query.run(data, time="at", order_by=["type"])
        assert sorted(str(match) for match in matches) == sorted(
            ["[3,2] A=3, B=2, x=3, y=2", "[1,0] A=1, B=0, x=1, y=0", "[3,0] A=3, B=0, x=3, y=0"]
        )
        for match in matches:
            assert match.events == [UNSORTED.to_pylist()[row] for row in match.positions]
            assert match.x == [UNSORTED.to_pylist()[match.start]]
        assert {row["start"] for row in matches.to_arrow().to_pylist()} == {1, 3}


def test_of_sorted_data_a_column_of_positions_is_reported_if_named() -> None:
    numbered = UNSORTED.append_column("row", pa.array([40, 30, 20, 10]))
    matches = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y").run(
        numbered, time="at", order_by=["type"], position="row"
    )
    assert {match.positions for match in matches} == {(10, 20), (10, 40), (30, 40)}
    assert [event["at"] for match in matches for event in match.events if match.positions == (30, 40)] == [3, 4]


def test_positions_of_merged_streams_number_the_merged_stream() -> None:
    parts = {"S": UNSORTED.slice(0, 2), "T": UNSORTED.slice(2, 2)}
    matches = cerite.query("SELECT * FROM S, T WHERE A AS x ; B AS y").run(parts, time="at", order_by=["type"])
    assert {match.positions for match in matches} == {(0, 1), (0, 3), (2, 3)}
    assert {tuple(event["at"] for event in match.events) for match in matches} == {(1, 2), (1, 4), (3, 4)}
