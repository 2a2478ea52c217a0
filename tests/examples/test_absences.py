"""What did not happen in time, as people ask for it: read like the rules, not like the definitions."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

import cerite
from cerite import reference
from cerite.core.errors import PatternError, StreamError

Rows = list[dict[str, Any]]


def at(seconds: float) -> datetime:
    return datetime(2026, 1, 1) + timedelta(seconds=seconds)


def events(*given: tuple[str, str, float]) -> Rows:
    return [{"type": kind, "key": key, "at": at(seconds)} for kind, key, seconds in given]


SCHEMA = {"type": "string", "key": "string", "at": "timestamp"}
UNPAID = "SELECT o FROM S WHERE ORDER AS o ; NOT PAYMENT[key = o.key] WITHIN 1 minute"
SILENT = "SELECT * FROM S WHERE BEAT AS b ; NOT BEAT PARTITION BY [key] WITHIN 30 seconds"
STRANGE = "SELECT * FROM S WHERE NOT LOGIN ; TRANSFER AS t PARTITION BY [key] WITHIN 1 hour"


def keys(matches: Any, variable: str) -> list[str]:
    return [match[variable][0]["key"] for match in matches]


def test_orders_that_are_not_paid() -> None:
    rows = events(("ORDER", "a", 0), ("ORDER", "b", 1), ("PAYMENT", "b", 30), ("PAYMENT", "a", 61))
    assert keys(cerite.query(UNPAID).run(rows, time="at"), "o") == ["a"]


def test_a_transfer_without_a_login_in_the_hour_before() -> None:
    rows = events(("LOGIN", "a", 0), ("TRANSFER", "a", 60), ("TRANSFER", "b", 61), ("TRANSFER", "a", 3601))
    assert keys(cerite.query(STRANGE).run(rows, time="at"), "t") == ["b", "a"]


def test_a_quiet_key_is_told_of_when_time_passes() -> None:
    stream = cerite.query(SILENT).stream(SCHEMA, time="at")
    assert not list(stream.push(events(("BEAT", "a", 0), ("BEAT", "b", 5), ("BEAT", "a", 20))))
    assert not list(stream.advance(at(35))), "30 seconds after 5 something may still come at 35"
    assert keys(stream.advance(at(35.001)), "b") == ["b"]
    assert keys(stream.push(events(("BEAT", "c", 51))), "b") == ["a"], "an event of another key is enough"
    assert keys(stream.close(), "b") == ["c"]


def test_what_is_late_within_the_watermark_still_counts() -> None:
    stream = cerite.query(UNPAID).stream(SCHEMA, time="at", watermark="10 seconds")
    assert not list(stream.push(events(("ORDER", "a", 0), ("ORDER", "b", 0), ("OTHER", "c", 65))))
    assert not list(stream.push(events(("PAYMENT", "a", 60))))
    assert keys(stream.push(events(("OTHER", "c", 80))), "o") == ["b"]


def test_an_open_window_outlives_a_restart() -> None:
    query = cerite.query(SILENT)
    first = query.stream(SCHEMA, time="at")
    first.push(events(("BEAT", "a", 0), ("BEAT", "b", 1)))
    second = query.stream(SCHEMA, time="at")
    second.restore(first.snapshot())
    assert keys(second.advance(at(40)), "b") == ["a", "b"]


def test_memory_follows_the_open_windows() -> None:
    stream = cerite.query(SILENT).stream(SCHEMA, time="at")
    counted = 0
    for minute in range(30):
        rows = events(*(("BEAT", f"{minute} {k}", 60 * minute) for k in range(500)))
        counted += stream.push(rows).count()
        assert stream.metrics.active <= 500
        assert len(stream.snapshot()) < 300_000
    assert counted == 29 * 500
    assert stream.close().count() == 500


@pytest.mark.parametrize(
    ("pattern", "what", "advice"),
    [
        ("(A ; NOT B WITHIN 5 seconds)+ ; C", "a part that is repeated without bound", "bound it"),
        ("A ; NOT (C ; (A ; NOT B WITHIN 5 seconds)) ; D", "at the end of a part inside NOT", "put the part outside"),
        ("(A AS x ; NOT B[key = x.key] WITHIN 5 seconds) ; C AS x", "is bound again after the part", "another name"),
        ("(A ; NOT B WITHIN 5 EVENTS) ; (C ; NOT D WITHIN 6 seconds)", "not of 6 seconds and 5 EVENTS", "of time"),
        ("(A ; NOT B WITHIN 5 [v]) ; (C ; NOT D WITHIN 6 [v])", "one width over an attribute", "windows of time"),
        ("(A ; NOT B WITHIN 5 EVENTS) ; C", "inside one of 1 hour", "both windows by time"),
        ("(A ; NOT B WITHIN 5 [v]) ; C", "inside one of 1 hour", "over the same attribute"),
        ("A AS x ; (NOT B[key = x.key] ; C WITHIN 5 seconds)", "that reads `x` from before the part", "into the gap"),
        ("NOT B[key = y.key] ; A AS x ; C AS y", "if that is the match's first, and `y` is another", "PARTITION BY"),
        ("A AS a ; (NOT B[key = x.key + a.key] ; C AS x WITHIN 5 seconds)", "event together with `a`", "one of them"),
        ("PROJECT{x}(A AS x ; B AS y ; NOT C) AS z FILTER MIN(z.at) > 1", "a projection leaves", "on what occurs"),
    ],
)  # fmt: skip
def test_what_the_engine_does_not_run_says_what_to_write(pattern: str, what: str, advice: str) -> None:
    with pytest.raises(PatternError) as refused:
        cerite.query(f"SELECT * FROM S WHERE {pattern} WITHIN 1 hour").run([{"type": "A"}])
    assert what in str(refused.value)
    assert advice in str(refused.value)


def test_a_transfer_without_a_login_that_was_confirmed_in_the_hour_before() -> None:
    """What is absent before compares its own events: the confirmation is of the same key as the login."""
    confirmed = "LOGIN AS l ; CONFIRM AS c FILTER c[key = l.key]"
    query = cerite.query(f"SELECT t FROM S WHERE NOT ({confirmed}) ; TRANSFER AS t WITHIN 1 hour")
    rows = events(("LOGIN", "a", 0), ("CONFIRM", "b", 1), ("TRANSFER", "x", 60), ("CONFIRM", "a", 61),
                  ("TRANSFER", "y", 3600), ("TRANSFER", "z", 3601))  # fmt: skip
    assert keys(query.run(rows, time="at"), "t") == ["x", "z"]
    explained = str(query.explain())
    assert "absent before (since0), in the query's window: CONFIRM" in explained
    assert "is a match" in str(query.why(query.run(rows, time="at")[0]))
    assert "but rows 0 to 3 are before row 4" in str(query.why_not(rows, events=[4], time="at"))
    assert "[5,5] t=5" in str(query.trace(rows, time="at"))


def test_a_payment_without_an_order_by_id_and_without_partitions() -> None:
    query = cerite.query("SELECT p FROM S WHERE NOT ORDER[key = p.key] ; PAYMENT AS p WITHIN 1 hour")
    rows = events(("ORDER", "a", 0), ("PAYMENT", "b", 1), ("PAYMENT", "a", 2), ("PAYMENT", "a", 3601))
    assert keys(query.run(rows, time="at"), "p") == ["b", "a"]
    assert "ORDER; PAYMENT[ORDER.key = key]" in str(query.explain())
    assert "but row 0 is before row 2" in str(query.why_not(rows, events=[2], time="at"))
    assert query.run(rows, time="at").count() == 2


def test_what_must_be_absent_and_compares_its_own_events_is_forgotten_with_the_window() -> None:
    """Strings that come once and never again leave neither numbers nor partial matches behind."""
    pattern = "NOT (LOGIN AS l ; CONFIRM AS c FILTER c[key = l.key]) ; TRANSFER"
    stream = cerite.query(f"SELECT * FROM S WHERE {pattern} WITHIN 9 seconds").stream(SCHEMA, time="at")
    sizes = []
    for part in range(4):
        for second in range(50):
            at_once = 50 * part + second
            stream.push(events(("LOGIN", f"{at_once:03}", at_once), ("TRANSFER", "x", at_once)))
        sizes.append(len(stream.snapshot()))
    assert len(set(sizes[1:])) == 1


@pytest.mark.parametrize(
    ("query", "what", "advice"),
    [
        ("(A ; NOT B WITHIN 5 [v]) ; C", "only inside a window over the same attribute", "`WITHIN 100 [v]`"),
        ("(A ; NOT B WITHIN 5 EVENTS) ; (C ; NOT D WITHIN 6 EVENTS) CONSUME BY ANY", "CONSUME BY", "of one length"),
        ("(A ; NOT B WITHIN 5 EVENTS) ; (C ; NOT D WITHIN 6 EVENTS) LIMIT 1", "LIMIT where NOTs", "of one length"),
    ],
)
def test_what_the_engine_does_not_run_around_parts_that_end_in_not(query: str, what: str, advice: str) -> None:
    with pytest.raises(PatternError) as refused:
        cerite.query(f"SELECT * FROM S WHERE {query}").run([{"type": "A"}])
    assert what in str(refused.value)
    assert advice in str(refused.value)


def test_windows_of_several_lengths_need_times_that_are_no_floats() -> None:
    query = cerite.query("SELECT * FROM S WHERE (A ; NOT B WITHIN 5 seconds) ; (C ; NOT D WITHIN 6 seconds)")
    with pytest.raises(StreamError, match="several lengths") as refused:
        query.run([{"type": "A", "at": 0.5}], time="at").count()
    assert "timestamps" in str(refused.value.hint)


def test_a_transfer_without_a_login_before_it_then_a_closed_account() -> None:
    text = "SELECT t FROM S WHERE (NOT LOGIN ; TRANSFER AS t WITHIN 1 hour) ; CLOSE PARTITION BY [key] WITHIN 1 day"
    rows = events(
        ("LOGIN", "a", 0), ("TRANSFER", "a", 60), ("TRANSFER", "b", 61), ("CLOSE", "a", 9e3), ("CLOSE", "b", 9e3)
    )
    assert keys(cerite.query(text).run(rows, time="at"), "t") == ["b"]


SETTLED = (
    "SELECT o, s FROM S WHERE (ORDER AS o ; NOT CANCEL[key = o.key] WITHIN 30 seconds) ; SHIP[key = o.key] AS s "
    "WITHIN 9 minutes"
)


def test_an_order_that_is_not_cancelled_in_time_and_shipped() -> None:
    rows = events(
        ("ORDER", "a", 0), ("SHIP", "a", 10), ("ORDER", "b", 11), ("SHIP", "b", 12), ("CANCEL", "b", 41),
        ("CANCEL", "a", 42), ("SHIP", "a", 50), ("SHIP", "b", 51),
    )  # fmt: skip
    matches = list(cerite.query(SETTLED).run(rows, time="at"))
    assert [(match["o"][0]["key"], match.end) for match in matches] == [("a", 1), ("a", 6)]


def test_what_is_shipped_in_time_is_told_of_when_the_order_cannot_be_cancelled_any_more() -> None:
    stream = cerite.query(SETTLED).stream(SCHEMA, time="at")
    assert not list(stream.push(events(("ORDER", "a", 0), ("SHIP", "a", 10))))
    assert not list(stream.advance(at(30))), "at 30 it may still be cancelled"
    other = cerite.query(SETTLED).stream(SCHEMA, time="at")
    other.restore(stream.snapshot())
    for each in (stream, other):
        assert keys(each.advance(at(30.001)), "s") == ["a"]
        assert keys(each.push(events(("SHIP", "a", 40))), "s") == ["a"], "from then on at once"
        assert not list(each.close())


def test_not_at_the_end_of_a_part_is_what_a_comparison_of_times_says() -> None:
    part = cerite.query("SELECT x, c FROM S WHERE (A AS x ; NOT B WITHIN 30 seconds) ; C AS c WITHIN 9 minutes")
    compared = cerite.query(
        "SELECT x, c FROM S WHERE A AS x ; NOT B[at - x.at <= 30 seconds] ; C[at - x.at > 30 seconds] AS c "
        "WITHIN 9 minutes"
    )
    matched = 0
    for seed in range(60):
        draw = random.Random(seed)
        times = sorted(draw.choice((0, 5, 30, 31, 45, 60, 61, 90)) for _ in range(8))
        rows = events(*((draw.choice("AABCC"), "", seconds) for seconds in times))
        matches = set(part.run(rows, time="at"))
        assert matches == set(reference.matches(part.query, rows, time="at"))
        after = {each for each in matches if rows[each.end]["at"] - rows[each.start]["at"] > timedelta(seconds=30)}
        assert set(compared.run(rows, time="at")) == after
        matched += bool(after)
    assert matched > 20
