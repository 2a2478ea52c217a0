"""SUPPRESS: one alert instead of thousands, what it costs, what is refused, and that nothing of it is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

import cerite
from cerite import event
from cerite.core.errors import ArgumentError, PatternError, QuerySyntaxError, SnapshotError, StreamError
from cerite.engine.recycle import Recycler
from cerite.pattern import Size, Suppress

SCHEMA = {"type": "string", "user": "string", "at": "int"}
PAIRS = "SELECT * FROM S WHERE A ; B PARTITION BY [user] WITHIN 1 minute SUPPRESS 2 seconds PER PARTITION"


def events(text: str, *, every: int = 1_000, users: str = "u") -> list[dict[str, Any]]:
    return [
        {"type": kind, "user": users[at % len(users)], "at": at * every}
        for at, kind in enumerate(text.replace(" ", ""))
    ]


def test_more_matches_than_anyone_could_enumerate_are_one_alert() -> None:
    """200 partial matches of every length: 2^200 matches at the first B alone."""
    rows = events("A" * 200 + "BBB")
    matches = cerite.query("SELECT * FROM S WHERE A+ ; B SUPPRESS 1 hour").run(rows, time="at")
    assert [match.end for match in matches] == [200]
    assert matches.count() == 1
    assert matches.suppressed() == 3 * (2**200 - 1) - 1
    stream = cerite.query("SELECT * FROM S WHERE A+ ; B SUPPRESS 1 hour").stream(SCHEMA, time="at", counting=True)
    pushed = [stream.push([row]) for row in rows]
    assert [sum(each.count() for each in pushed), sum(each.suppressed() for each in pushed)] == [
        1,
        matches.suppressed(),
    ]
    assert stream.metrics.suppressed == matches.suppressed()
    assert stream.metrics.occurrences == 3


def test_pushes_that_are_not_read_silence_as_well() -> None:
    rows = events("AB AB AAB", every=700)
    read, unread = (cerite.query(PAIRS).stream(SCHEMA, time="at") for _ in range(2))
    ends = [match.end for row in rows for match in read.push([row])]
    for row in rows[:-1]:
        unread.push([row])
    assert ends == [1, 6]
    assert [match.end for match in unread.push([rows[-1]])] == [6]


def test_what_is_left_out_of_a_stream_is_counted_only_if_it_counts() -> None:
    stream = cerite.query(PAIRS).stream(SCHEMA, time="at")
    pushed = stream.push(events("AAB"))
    assert pushed.count() == 1
    assert stream.metrics.suppressed is None
    with pytest.raises(StreamError, match="not counted") as caught:
        pushed.suppressed()
    assert "counting=True" in str(caught.value.hint)


def test_a_query_without_it_suppresses_nothing() -> None:
    query = cerite.query("SELECT * FROM S WHERE A ; B")
    assert query.run(events("AAB"), time="at").suppressed() == 0
    stream = query.stream(SCHEMA, time="at")
    assert stream.push(events("AAB")).suppressed() == 0
    assert stream.metrics.suppressed is None


def test_events_that_are_read_once_are_not_counted_again() -> None:
    matches = cerite.query(PAIRS).run(iter(events("AAB")), time="at")
    assert len(list(matches)) == 1
    with pytest.raises(StreamError, match="read only once"):
        matches.suppressed()


@pytest.mark.parametrize("given", ["2 seconds per partition", Suppress(Size(2, "seconds"), per_partition=True)])
def test_in_python_as_in_text(given: Any) -> None:
    built = cerite.query(event("A") >> event("B"), partition_by="user", within="1 minute", suppress=given)
    assert str(built) == str(cerite.query(PAIRS))
    assert cerite.query(str(built)).query == built.query


def test_durations_of_python() -> None:
    built = cerite.query(event("A"), suppress=timedelta(minutes=10))
    assert str(built).endswith("SUPPRESS 600 seconds")
    with pytest.raises(ArgumentError, match="`suppress` is text"):
        cerite.query(event("A"), suppress=600)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="own clauses"):
        cerite.query("SELECT * FROM S WHERE A", suppress="10 minutes")


def test_it_takes_a_time() -> None:
    for size in ("100 EVENTS", "5 [at]"):
        with pytest.raises(PatternError, match="takes a time") as caught:
            cerite.query(f"SELECT * FROM S WHERE A SUPPRESS {size}")
        assert "10 minutes" in str(caught.value.hint)
    with pytest.raises(QuerySyntaxError, match="the query ends too early"):
        cerite.query("SELECT * FROM S WHERE A SUPPRESS 10 minutes PER")
    with pytest.raises(StreamError, match="SUPPRESS needs to know when") as missing:
        cerite.query("SELECT * FROM S WHERE A SUPPRESS 10 minutes").run(events("A"))
    assert "time" in str(missing.value.hint)


def test_clauses_that_say_nothing_beside_it_are_named() -> None:
    query = cerite.query("SELECT * FROM S WHERE A LIMIT 3 SUPPRESS 1 second PER PARTITION").query
    said = " ".join(note.message for note in cerite.check(query))
    assert "without PARTITION BY is about the whole stream" in said
    assert "LIMIT has no effect" in said


def test_names_of_attributes_may_still_be_these_words() -> None:
    rows = [{"type": "A", "suppress": 1, "per": 2, "at": 0}]
    assert cerite.query("SELECT * FROM S WHERE A[suppress < per] SUPPRESS 1 day").run(rows, time="at").count() == 1


def test_snapshots_carry_the_silence_and_belong_to_it() -> None:
    stream = cerite.query(PAIRS).stream(SCHEMA, time="at")
    assert stream.push(events("AB")).count() == 1
    saved = stream.snapshot()
    again = cerite.query(PAIRS).stream(SCHEMA, time="at")
    again.restore(saved)
    later = [{"type": "B", "user": "u", "at": at} for at in (2_000, 3_000, 3_001)]
    assert [match.end for match in again.push(later)] == [4]
    other = cerite.query(PAIRS.replace("2 seconds", "3 seconds")).stream(SCHEMA, time="at")
    with pytest.raises(SnapshotError, match="SUPPRESS is 2 seconds PER PARTITION there"):
        other.restore(saved)


def test_a_silence_that_an_event_of_the_same_time_still_meets_is_not_forgotten() -> None:
    rows = [("A", "u", 0), ("A", "v", 2_000), ("A", "u", 2_000), ("A", "u", 2_001)]
    text = "SELECT * FROM S WHERE A PARTITION BY [user] SUPPRESS 2 seconds PER PARTITION"
    stream = cerite.query(text).stream(SCHEMA, time="at")
    with patch.object(Recycler, "due", True):
        ends = [match.end for kind, user, at in rows for match in stream.push({"type": kind, "user": user, "at": at})]
    assert ends == [0, 1, 3]


def test_lost_heartbeats_are_told_once_an_hour_by_the_clock_alone() -> None:
    """What is known at a deadline is reported when time passes it, and silences by it, not by the watermark."""
    text = "SELECT * FROM S WHERE A AS last ; NOT A PARTITION BY [user] WITHIN 30 seconds SUPPRESS 1 hour PER PARTITION"
    stream = cerite.query(text).stream(SCHEMA, time="at", counting=True)

    def beat(user: str, *seconds: int) -> list[int]:
        return [match.end for at in seconds for match in stream.push({"type": "A", "user": user, "at": at * 1_000})]

    assert beat("u", 0, 20, 40) == []
    assert [match.end for match in stream.advance(70_000)] == []  # 40 + 30: not over yet
    late = stream.advance(3_000_000)
    assert [match.end for match in late] == [2]
    saved = stream.snapshot()
    stream = cerite.query(text).stream(SCHEMA, time="at", counting=True)
    stream.restore(saved)
    assert beat("u", 3_000, 3_640, 3_700) == []  # 3,030 and 3,670 are not more than an hour after 70
    assert stream.metrics.suppressed == 2
    assert [match.end for match in stream.advance(9_000_000)] == [5]
    assert stream.close().suppressed() == 0


def test_explain_says_what_it_does_and_keeps() -> None:
    text = str(cerite.query(PAIRS).explain())
    assert "after a match none is reported in its partition until 2 seconds are over" in text
    assert "the time of the last report" in text
