"""One query in one run, in streams, out of order and in the judge: the matches are the same in all of these ways."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice, permutations, product
from math import ceil, factorial
from typing import Any

import pyarrow as pa

from cerite.api.query import AnyQuery, Query
from cerite.api.query import query as checked
from cerite.core.errors import SchemaError
from cerite.core.match import Match
from cerite.data.open import opened
from cerite.data.reading import Reading
from cerite.engine.plan import Semantics
from cerite.pattern.check_kinds import read_attributes
from cerite.reference.semantics import matches, occurrences
from cerite.testing.event_text import notation
from cerite.testing.given import AnyEvents, Rows, rows_of

_POSITION = "position in the stream"
_TYPES = (pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us"))
Matches = list[Match]


def assert_agrees(
    query: AnyQuery,
    events: AnyEvents,
    *,
    time: str = "at",
    type: str = "type",
    semantics: Semantics = "valuations",
    orders: int = 6,
    seed: int = 0,
) -> int:
    """Assert that a query has the same matches in one run, a stream, out of order and in the judge; returns how many.

    The stream is fed event by event, and in random batches with a snapshot and restore after each. Events with times
    are also fed in other orders of arrival, under a watermark that allows for them: in all orders if there are at most
    `orders`, else in that many random ones. The judge evaluates by brute force: a dozen events are plenty.

    >>> assert_agrees("SELECT * FROM S WHERE A AS x ; B+ AS y WITHIN 9 seconds", "A@0 B(v=1)@1s B(v=2)@1s C@20s")
    3
    """
    __tracebackhide__ = True
    subject = checked(query)
    rows, named = rows_of(events, type, time)
    judged = _judged(subject, rows, named, type, semantics)
    ways: list[tuple[str, Matches]] = [("one run", list(subject.run(rows, time=named, type=type, semantics=semantics)))]
    if rows:
        options = {"time": named, "type": type, "semantics": semantics}
        table = _table(subject, rows, options)
        ways.append(("a stream, event by event", _streamed(subject, table, options, [1] * len(rows))))
        draws = random.Random(seed)
        sizes = [draws.randint(1, 3) for _ in rows]
        ways.append(("a stream with snapshots", _streamed(subject, table, options, sizes, restored=True)))
        if named is not None:
            for order in arrivals(range(len(rows)), orders=orders, seed=seed):
                arrival = f"a stream in the order {', '.join(map(str, order))}"
                ways.append((arrival, _arriving(subject, table, order, options)))
    for way, actual in ways:
        _compare(subject, rows, named, type, semantics, judged, way, actual)
    return len(judged)


def arrivals(events: Iterable[Any], *, orders: int = 6, seed: int = 0) -> Iterator[list[Any]]:
    """Orders in which events may arrive: all but the given one, or `orders` random ones if those are more than that.

    >>> list(arrivals("ab"))
    [['b', 'a']]
    >>> [len(list(arrivals(range(n)))) for n in (1, 3, 9)]
    [0, 5, 6]
    """
    given = list(events)
    if factorial(len(given)) - 1 <= orders:
        yield from map(list, islice(permutations(given), 1, None))
        return
    draws = random.Random(seed)
    for _ in range(orders):
        yield draws.sample(given, len(given))


def _judged(query: Query, rows: Rows, time: str | None, type: str, semantics: Semantics) -> Matches:
    return matches(query.query, rows, semantics=semantics, type=type, time=time)


def _table(query: Query, rows: Rows, options: dict[str, Any]) -> pa.Table:
    """The events with all columns that the query reads; one without values has a type that the query can compare."""
    absent = dict.fromkeys(sorted(read_attributes(query.query)))
    table = opened([absent | row for row in rows], Reading()).table()
    untyped = [name for name in absent if pa.types.is_null(table.schema.field(name).type)]
    refusal: SchemaError | None = None
    for kinds in product(_TYPES, repeat=len(untyped)):
        typed = table
        for name, kind in zip(untyped, kinds, strict=True):
            typed = typed.set_column(table.column_names.index(name), name, pa.nulls(table.num_rows, kind))
        try:
            query.stream(typed, **options)
            return typed
        except SchemaError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _streamed(
    query: Query, table: pa.Table, options: dict[str, Any], sizes: Sequence[int], *, restored: bool = False
) -> Matches:
    stream = query.stream(table, **options)
    actual: Matches = []
    at = 0
    for size in sizes:
        actual += stream.push(table.slice(at, size))
        at += size
        if restored:
            again = query.stream(table, **options)
            again.restore(stream.snapshot())
            stream = again
    return [*actual, *stream.close()]


def _arriving(query: Query, table: pa.Table, order: list[int], options: dict[str, Any]) -> Matches:
    """What a stream finds if it gets its events in this order and waits for all of them."""
    table = table.append_column(_POSITION, pa.array(range(table.num_rows), pa.int64()))
    span = table[options["time"]].to_pylist()
    width = span[-1] - span[0]
    wait = width if isinstance(width, timedelta) else timedelta(milliseconds=ceil(width))
    stream = query.stream(table, **options, position=_POSITION, watermark=wait + timedelta(seconds=1))
    actual: Matches = []
    for place in order:
        actual += stream.push(table.slice(place, 1))
    return [*actual, *stream.close()]


def _compare(
    query: Query,
    rows: Rows,
    time: str | None,
    type: str,
    semantics: Semantics,
    judged: Matches,
    way: str,
    actual: Matches,
) -> None:
    __tracebackhide__ = True
    spec = query.query
    everything = judged
    if spec.limit is not None or spec.suppress is not None:  # which of the matches at an event are reported is open
        whole = Query(replace(spec, limit=None, suppress=None))
        everything = _judged(whole, rows, time, type, semantics)
        by = occurrences(spec, rows, semantics=semantics, type=type, time=time)
        same = set(actual) <= set(everything) and Counter(map(by.get, actual)) == Counter(map(by.get, judged))
    else:
        same = len(actual) == len(judged) and set(actual) == set(judged)
    if same:
        return
    lines = [f"{way} does not give what the judge says", f"  in         {notation(rows, type=type, time=time or 'at')}"]
    lines += [f"  only there {match}" for match in actual if match not in everything]
    lines += [f"  only judge {match}" for match in judged if match not in actual]
    raise AssertionError("\n".join(lines))
