"""Recycling among refused pushes, failures and snapshots: what is refused or breaks off changes nothing, or is said."""

from __future__ import annotations

from typing import Any

import pytest

import cerite
from cerite.core.errors import StreamError
from cerite.engine.recycle import Recycler

SCHEMA = {"type": "string", "t": "int", "n": "int", "k": "string", "l": "int"}
QUERIES = {
    "subsets": "A ; B PARTITION BY [k] WITHIN 9 [n]",
    "two keys": "A ; B PARTITION BY [k, l] WITHIN 9 [n]",
    "absent before": "NOT (A AS x ; C AS y FILTER y[k > x.k]) ; B PARTITION BY [l] WITHIN 9 [n]",
    "registers": "A AS x ; B AS y FILTER y[k >= x.k] PARTITION BY [l] WITHIN 9 [n]",
}


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recycler, "due", True)


def event(kind: str, n: int | None, key: str = "a", other: int = 0, t: int = 0) -> dict[str, Any]:
    return {"type": kind, "t": t, "n": n, "k": key, "l": other}


@pytest.mark.parametrize("counting", [False, True])
@pytest.mark.parametrize("name", QUERIES)
def test_a_refused_push_leaves_the_same_bytes(name: str, counting: bool) -> None:
    query = cerite.query(f"SELECT * FROM S WHERE {QUERIES[name]}")
    stream, untouched = (query.stream(SCHEMA, counting=counting) for _ in range(2))
    for each in (stream, untouched):
        each.push([event("A", 1, "b"), event("A", 2, "old"), event("A", 2, "c")])
        each.push([event("A", 50, "b"), event("C", 60, "old", 1), event("A", 61, "c")])
    saved = stream.snapshot()
    wrong = [event("A", 62, "new"), event("B", 63, "newer", 2), event("A", 70, "c"), event("B", 1, "c")]
    for _ in range(2):
        with pytest.raises(StreamError, match="decreases"):
            stream.push(wrong)
        assert stream.snapshot() == saved
        with pytest.raises(StreamError, match="decreases"):
            stream.push(wrong)
    good = [event("B", 69, "c"), event("B", 69, "d"), event("B", 69, "b")]
    assert list(stream.push(good)) == list(untouched.push(good)) != []
    assert stream.snapshot() == untouched.snapshot()


def test_strings_of_a_refused_push_leave_no_order_behind() -> None:
    """As many strings come as were refused, but others: their order is worked out anew."""
    stream = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[k > x.k] WITHIN 9 [n]").stream(SCHEMA)
    stream.push([event("A", 5, "m")])
    with pytest.raises(StreamError, match="decreases"):
        stream.push([event("B", 5, "a"), event("B", 1, "b")])
    assert stream.push([event("B", 5, "z"), event("B", 5, "y")]).count() == 2


@pytest.mark.parametrize("failure", [MemoryError, KeyboardInterrupt])
def test_a_stream_that_broke_off_while_recycling_refuses_to_go_on(
    failure: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = cerite.query(f"SELECT * FROM S WHERE {QUERIES['subsets']}").stream(SCHEMA)
    stream.push([event("A", 1)])

    def broken(*_: Any) -> None:
        raise failure

    monkeypatch.setattr(stream._run._run.recogniser, "keep", broken)
    with pytest.raises(StreamError if failure is MemoryError else KeyboardInterrupt):
        stream.push([event("B", 2)])
    with pytest.raises(StreamError, match=r"a push was interrupted(.|\n)*restore a snapshot"):
        stream.push([event("B", 2)])


def test_values_beside_a_missing_one_are_not_kept() -> None:
    """A compound key with a NULL is no partition; the other value, ever new, is forgotten like any."""
    stream = cerite.query("SELECT * FROM S WHERE A ; B PARTITION BY [k, l] WITHIN 9 [n]").stream(SCHEMA)
    for at in range(20):
        stream.push([{**event("A", at, f"key {at}"), "l": None}])
    assert stream._run._run.intake.names == 1
    stream.snapshot()
    assert stream._run._run.intake.names == 0
