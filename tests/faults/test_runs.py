"""Bad data, wrong names, damaged snapshots: a clear error each, and nothing lost or found by mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cerite
from cerite.core.errors import CeriteError, PatternError, SchemaError, SnapshotError, StreamError
from tests.command import cerite as command

PAIR = "SELECT * FROM S WHERE A AS x ; B AS y WITHIN 5 milliseconds"
SCHEMA = pa.schema([("type", pa.string()), ("at", pa.int64()), ("v", pa.float64())])


def rows(*at: Any) -> list[dict[str, Any]]:
    return [{"type": "AB"[k % 2], "at": time, "v": 1.0} for k, time in enumerate(at)]


def message(error: pytest.ExceptionInfo[CeriteError]) -> str:
    return str(error.value)


def test_unsorted_streams_are_refused_with_the_row() -> None:
    with pytest.raises(StreamError) as error:
        cerite.query(PAIR).run(rows(1, 2, 5, 4), time="at").count()
    assert "`at` decreases at row 3: 4 after 5" in message(error)
    assert "order_by" in message(error)


def test_the_row_is_right_across_batches() -> None:
    stream = cerite.query(PAIR).stream(SCHEMA, time="at")
    stream.push(rows(1, 2))
    with pytest.raises(StreamError, match="at row 2: 1 after 2"):
        stream.push(rows(1, 2))


def test_asked_to_sort_it_sorts() -> None:
    matches = cerite.query(PAIR).run(rows(3, 9, 1, 4), time="at", order_by=["type"])
    assert [str(match) for match in matches] == ["[0,3] A=0, B=3, x=0, y=3", "[2,3] A=2, B=3, x=2, y=3"]


def test_ties_are_broken_by_the_order_columns() -> None:
    events = [{"type": "B", "at": 1, "rank": 2}, {"type": "A", "at": 1, "rank": 1}]
    assert cerite.query(PAIR).run(events, time="at").count() == 0
    assert cerite.query(PAIR).run(events, time="at", order_by=["rank"]).count() == 1


def test_a_missing_time_is_refused_with_the_row() -> None:
    with pytest.raises(StreamError, match="row 1 has no time in `at`"):
        cerite.query(PAIR).run(rows(1, None, 3), time="at").count()


def test_a_time_window_needs_a_time() -> None:
    with pytest.raises(StreamError, match="no time column is named"):
        cerite.query(PAIR).run(rows(1, 2))


@pytest.mark.parametrize("name", ["time", "type", "position", "order_by"])
def test_unknown_columns_are_refused(name: str) -> None:
    options: dict[str, Any] = {"time": "at"} | {name: ["att"] if name == "order_by" else "att"}
    with pytest.raises(StreamError, match="no column `att`"):
        cerite.query(PAIR).run(rows(1, 2), **options)


def test_types_that_do_not_fit_the_data_are_refused_before_running() -> None:
    with pytest.raises(SchemaError, match="`v` is a number and `'a'` is a string"):
        cerite.query("SELECT * FROM S WHERE A FILTER A[v = 'a']").run(rows(1))


def test_unknown_attributes_are_refused_with_the_query() -> None:
    with pytest.raises(SchemaError) as error:
        cerite.query("SELECT * FROM S WHERE A FILTER A[w = 1]").run(pa.table({"type": ["A"], "v": [1]}))
    assert "the stream has no attribute `w`" in message(error)
    assert "WHERE A FILTER A[w = 1]" in message(error)


def test_two_event_types_need_a_type_column() -> None:
    with pytest.raises(StreamError, match="no column holds the event type"):
        cerite.query("SELECT * FROM S WHERE A ; B").run(pa.table({"kind": ["A", "B"]}))
    assert cerite.query("SELECT * FROM S WHERE A ; B").run(pa.table({"kind": ["A", "B"]}), type="kind").count() == 1
    assert cerite.query("SELECT * FROM S WHERE A ; A").run(pa.table({"v": [1, 2]})).count() == 1


def test_streams_that_from_names_must_be_there() -> None:
    with pytest.raises(StreamError, match="FROM names `S`"):
        cerite.query("SELECT * FROM S WHERE A").run({"T": pa.table({"type": ["A"]})})


def test_positions_must_rise() -> None:
    with pytest.raises(StreamError, match="`at` does not rise at row 1"):
        cerite.query("SELECT * FROM S WHERE A").run(rows(1, 1), position="at").count()


def test_positions_are_reported_and_found_again() -> None:
    matches = cerite.query("SELECT * FROM S WHERE B").run(rows(10, 20, 30, 40), position="at")
    assert [match.positions for match in matches] == [(20,), (40,)]
    assert [event["at"] for match in matches for event in match.events] == [20, 40]


def test_a_window_attribute_that_goes_back_is_refused() -> None:
    text = "SELECT * FROM S WHERE A ; B WITHIN 5 [v]"
    with pytest.raises(StreamError, match="`v` decreases at position 1"):
        cerite.query(text).run([{"type": "A", "v": 2}, {"type": "B", "v": 1}]).count()


def test_what_the_engine_does_not_run_is_said_with_a_place() -> None:
    with pytest.raises(PatternError) as error:
        cerite.query("SELECT * FROM S WHERE A AS x ; NEXT(PROJECT{c}(B ; C AS c))").run(rows(1))
    assert "NEXT(…) of a part that begins with an event it does not show" in message(error)
    assert "^" in message(error)


@pytest.mark.parametrize("pattern", ["C AS z ; {}", "{}+", "(A AS z)? ; (C OR {})"])
def test_last_of_what_may_read_its_own_variable_or_one_of_before_is_refused(pattern: str) -> None:
    """It binds z itself, but on one way only; on the other z would be that of an earlier part or repetition."""
    text = "SELECT * FROM S WHERE " + pattern.format("LAST((_ OR A AS z) ; B FILTER B[v >= z.v])")
    with pytest.raises(PatternError) as error:
        cerite.query(text).run(rows(1))
    assert "LAST(…) of a part reads `z`, which may be bound before the part or by it" in message(error)
    assert "bind `z` on every way to the condition" in message(error)


def test_a_selection_that_binds_what_it_reads_runs_beside_the_same_name() -> None:
    events = [{"type": kind, "v": v} for kind, v in [("C", 9), ("A", 1), ("B", 2), ("A", 3), ("B", 2)]]
    text = "SELECT * FROM S WHERE C AS z ; LAST(A AS z ; B FILTER B[v >= z.v])"
    assert [match.positions for match in cerite.query(text).run(events)] == [(0, 1, 2), (0, 1, 4)]


def test_streams_that_can_be_read_once_say_so() -> None:
    matches = cerite.query("SELECT * FROM S WHERE A").run(iter(rows(1, 2)))
    assert matches.count() == 1
    with pytest.raises(StreamError, match="can be read only once"):
        list(matches)


@pytest.mark.parametrize("events", [[], pa.table({"type": pa.array([], pa.string()), "at": pa.array([], pa.int64())})])
def test_an_empty_stream_has_no_match(events: Any) -> None:
    matches = cerite.query(PAIR).run(events, time="at")
    assert (matches.count(), matches.exists(), list(matches), matches.to_arrow().num_rows) == (0, False, [], 0)


def test_huge_windows_and_extreme_times() -> None:
    events = [{"type": "A", "at": -(2**63)}, {"type": "B", "at": 2**63 - 1}]
    assert cerite.query("SELECT * FROM S WHERE A ; B WITHIN 100000 days").run(events, time="at").count() == 0
    assert cerite.query("SELECT * FROM S WHERE A ; B WITHIN 9223372036854775807 [at]").run(events).count() == 0
    assert cerite.query("SELECT * FROM S WHERE A ; B").run(events).count() == 1


def test_too_many_matches_for_a_table_are_refused_but_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cerite.api.batch.MANY", 1000)
    matches = cerite.query("SELECT * FROM S WHERE A+").run(pa.table({"type": ["A"] * 200}))
    assert matches.count() == 2**200 - 1
    with pytest.raises(StreamError, match="too many for a table in memory"):
        matches.to_arrow()
    assert len(matches.head(3)) == 3


def snapshot() -> tuple[cerite.EventStream, bytes]:
    stream = cerite.query(PAIR).stream(SCHEMA, time="at")
    stream.push(rows(1, 2, 3))
    return stream, stream.snapshot()


def test_every_damaged_byte_of_a_snapshot_is_noticed() -> None:
    _, data = snapshot()
    rng = np.random.default_rng(0)
    for place in {*range(40), *rng.integers(0, len(data), 200).tolist()}:
        damaged = bytearray(data)
        damaged[place] ^= 1 + int(rng.integers(0, 254))
        with pytest.raises(SnapshotError, match=r"not a snapshot|has version|is damaged"):
            cerite.query(PAIR).stream(SCHEMA, time="at").restore(bytes(damaged))


@pytest.mark.parametrize("cut", [0, 1, 10, 100, -1])
def test_a_cut_snapshot_is_refused(cut: int) -> None:
    with pytest.raises(SnapshotError, match=r"not a snapshot|is damaged"):
        cerite.query(PAIR).stream(SCHEMA, time="at").restore(snapshot()[1][:cut])


def test_a_snapshot_of_another_query_is_refused() -> None:
    other = cerite.query(PAIR.replace("B AS y", "B AS y FILTER y[v > 1]")).stream(SCHEMA, time="at")
    with pytest.raises(SnapshotError, match="another query"):
        other.restore(snapshot()[1])


def test_a_snapshot_goes_into_a_fresh_stream() -> None:
    stream, data = snapshot()
    with pytest.raises(StreamError, match="pushed already"):
        stream.restore(data)


def test_batches_of_another_schema_are_refused() -> None:
    stream = cerite.query(PAIR).stream(SCHEMA, time="at")
    with pytest.raises(StreamError, match="other columns"):
        stream.push(pa.table({"kind": ["A"]}))


@pytest.mark.parametrize("name", ["matches.xyz", "folder/matches.parquet"])
def test_outputs_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('{"type": "A"}\n')
    done = command("run", "SELECT * FROM S WHERE A", str(events), "-o", str(tmp_path / name), code=1)
    assert "error:" in done.stderr


def test_a_strategy_reads_nothing_that_a_repeated_projection_hides() -> None:
    """Its earlier ways would read what another repetition bound, which is forgotten."""
    part = "PROJECT{c}(A AS x ; NEXT(B ; C[v = x.v] AS c))"
    assert cerite.query(f"SELECT * FROM S WHERE {part}").plan().automaton.watchers
    with pytest.raises(PatternError) as error:
        cerite.query(f"SELECT * FROM S WHERE ({part})+").run(rows(1))
    assert "a strategy reads `x` from outside, inside a repeated projection that hides it" in message(error)
    assert "keep `x` in the projection" in message(error)
