"""What did not happen in time, as people ask for it: read like the rules, not like the definitions."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

import cerite
from cerite.core.errors import PatternError

Rows = list[dict[str, Any]]


def at(seconds: float) -> datetime:
    return datetime(2026, 1, 1) + timedelta(seconds=seconds)


def events(*told: tuple[str, str, float]) -> Rows:
    return [{"type": kind, "key": key, "at": at(seconds)} for kind, key, seconds in told]


SCHEMA = {"type": "string", "key": "string", "at": "timestamp"}
UNPAID = "SELECT o FROM S WHERE ORDER AS o ; NOT PAYMENT[key = o.key] WITHIN 1 minute"
SILENT = "SELECT * FROM S WHERE BEAT AS b ; NOT BEAT PARTITION BY [key] WITHIN 30 seconds"
STRANGE = "SELECT * FROM S WHERE NOT LOGIN ; TRANSFER AS t PARTITION BY [key] WITHIN 1 hour"


def keys(found: Any, variable: str) -> list[str]:
    return [match[variable][0]["key"] for match in found]


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
    told = 0
    for minute in range(30):
        rows = events(*(("BEAT", f"{minute} {k}", 60 * minute) for k in range(500)))
        told += stream.push(rows).count()
        assert stream.metrics.active <= 500
        assert len(stream.snapshot()) < 300_000
    assert told == 29 * 500
    assert stream.close().count() == 500


@pytest.mark.parametrize("pattern", ["(A ; NOT B WITHIN 5 seconds) ; C", "(NOT A ; B WITHIN 5 seconds)+"])
def test_a_part_with_a_window_of_its_own_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="NOT at an end of a part with a window of its own") as refused:
        cerite.query(f"SELECT * FROM S WHERE {pattern} WITHIN 1 hour").run([{"type": "A"}])
    assert "two queries" in str(refused.value)
