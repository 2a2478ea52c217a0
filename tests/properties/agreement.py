"""Differential tests: judge and engine must find the same matches of a random query on a random stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial, update_wrapper
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

from cerite.api.metrics import StreamMetrics
from cerite.api.query import Query
from cerite.api.stream import EventStream
from cerite.core.errors import CeriteError, PatternError
from cerite.core.match import Match
from cerite.data.columns import canonical_schema
from cerite.engine.bind import Program, bind
from cerite.engine.events.rows import Columns
from cerite.engine.plan import Plan
from cerite.pattern import Event, Named, QuerySpec, Select, Sequence, Size
from cerite.reference.semantics import Stream, matches, occurrences
from tests import strategies as random
from tests.dressed import PLAIN, Dress
from tests.telling import LARGE, LEAST, Share, often, refused, telling

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("name", pa.string()),
        ("ok", pa.bool_()),
        ("at", pa.int64()),
    ]
)


Rows = list[dict[str, Any]]
Occurrence = Callable[[Match], object]


SHARED = [*LARGE, HealthCheck.filter_too_much]  # `Share` has a floor of its own for how many cases run


AT_LENGTH = settings(often(1), max_examples=4_000, database=None)  # of each part


SEMANTICS = st.sampled_from(["valuations", "complex-events"])


QUERIES = random.queries(random.regular_patterns())


@st.composite
def engine_queries(draw: st.DrawFn) -> QuerySpec:
    """Queries with a pattern the engine runs; the strategy may also stand around the pattern."""
    query = draw(QUERIES)
    if query.strategy is not None and query.items is None and draw(st.integers(0, 3)) == 0:
        query = replace(query, where=Select(query.strategy, query.where), strategy=None)
    windowed = replace(query, within=Size.events(5))
    started = replace(windowed, where=Sequence((Named(Event("A"), "x"), query.where)))
    return next((each for each in (query, windowed, started) if runnable(each)), query)


@lru_cache(maxsize=64)  # planning costs more than the judge, and every test asks for the plan again and again
def ready(query: QuerySpec) -> Query:
    """The query to run, whose plan is made once."""
    return Query(query)


def planned(query: QuerySpec) -> Plan | None:
    try:
        return ready(query).plan()
    except PatternError:
        return None


def runnable(query: QuerySpec) -> bool:
    return planned(query) is not None


def sorted_window(query: QuerySpec, rows: Rows) -> bool:
    """Whether the events are in the order of the window's attribute, if it has one (per partition)."""
    if query.within is None or query.within.attribute is None:
        return True
    last: dict[Any, float] = {}
    for row in rows:
        key = tuple(row.get(name) for name in query.partition)
        value = row.get(query.within.attribute)
        if value is not None and value == value:
            if value < last.get(key, value):
                return False
            last[key] = value
    return True


def judged(query: QuerySpec, rows: Rows, semantics: Any) -> list[Match]:
    return matches(query, Stream.of(rows, time="at"), semantics=semantics)


def picks(query: QuerySpec) -> bool:
    """Whether only some of the matches at an event are reported, with no rule for which of them."""
    return query.limit is not None or query.suppress is not None


def unpicked(query: QuerySpec) -> QuerySpec:
    """The query that reports all matches at every event."""
    return replace(query, limit=None, suppress=None)


def deciding(query: QuerySpec, rows: Rows, semantics: Any) -> Occurrence:
    """What LIMIT counts a match by: its last event, or the one with which a window began; under SUPPRESS, its time."""
    return occurrences(query, Stream.of(rows, time="at"), semantics=semantics).__getitem__


def last_event(match: Match) -> object:
    return match.end


def same(
    matches: list[Match], expected: list[Match], query: QuerySpec, everything: list[Match],
    occurrence: Occurrence = last_event,
) -> None:  # fmt: skip
    assert len(set(matches)) == len(matches), "no match is reported twice"
    if not picks(query):
        assert set(matches) == set(expected)
        return
    assert set(matches) <= set(everything)
    assert Counter(map(occurrence, matches)) == Counter(map(occurrence, expected))


def agree(
    query: QuerySpec, rows: Rows, semantics: Any, dress: Dress = PLAIN, share: Share | None = None,
    *, like: Callable[[QuerySpec], bool] = runnable,
) -> None:  # fmt: skip
    """Assert that engine and judge agree; with `share`, on a case with a match that is still `like` what was drawn."""
    if share is not None:
        query, rows = telling(query, rows, partial(looked_at, semantics=semantics, like=like))
    if not sorted_window(query, rows):
        query = replace(query, within=Size.events(4))
    assume(like(query))
    table = dress.table(rows)
    rows = table.to_pylist()
    try:
        expected = judged(query, rows, semantics)
        everything = judged(unpicked(query), rows, semantics) if picks(query) else expected
        result = ready(query).run(table, time="at", semantics=semantics)
        matches = list(result)
    except CeriteError as error:
        if share is None or not refused(error):
            raise
        share.refused += 1
        return
    same(matches, expected, query, everything)
    assert result.count() == len(expected)
    if ready(query).plan(semantics).reports_one:  # then matches are counted in another way if none was read before
        assert ready(query).run(table, time="at", semantics=semantics).count() == len(expected)
    assert result.suppressed() == (len(everything) - len(expected) if query.suppress is not None else 0)
    if share is not None:
        share.note(bool(expected))


def looked_at(
    query: QuerySpec, rows: Rows, semantics: Any, like: Callable[[QuerySpec], bool] = runnable
) -> list[Match] | None:
    fits = query if sorted_window(query, rows) else replace(query, within=Size.events(4))
    return judged(fits, rows, semantics) if like(fits) else None


def cases(
    how: settings, *drawn: Any, parts: int = 1, least: float = LEAST
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test of many random cases, with a `Share` as first argument: enough must run, and more than `least` must match.

    A long run has several parts, which can run in parallel; each draws the same cases whenever it is run.
    """

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        def drawing(seeded: Callable[[Any], Any]) -> None:
            share = Share(test.__name__, least)

            @seeded
            @settings(how, suppress_health_check=SHARED)
            @given(st.tuples(*drawn))
            def case(values: tuple[Any, ...]) -> None:
                share.drawn += 1
                test(share, *values)

            case()
            share.check()

        def run() -> None:
            drawing(lambda case: case)

        def run_part(part: int) -> None:
            drawing(seed(part))

        whole = update_wrapper(run if parts == 1 else run_part, test)
        del whole.__wrapped__
        vars(whole)["draws_cases"] = True  # for tests/conftest.py
        return run if parts == 1 else pytest.mark.parametrize("part", range(parts))(run_part)

    return decorated


def stream_agrees(
    query: QuerySpec, rows: Rows, semantics: Any, rng: Any, share: Share, dress: Dress = PLAIN,
    *, restored: bool = True, like: Callable[[QuerySpec], bool] = runnable,
) -> None:  # fmt: skip
    """Assert that a stream in batches agrees with the judge; if `restored`, it goes on from a snapshot after each."""
    query, rows = telling(query, rows, partial(looked_at, semantics=semantics, like=like))
    if not sorted_window(query, rows):
        query = replace(query, within=Size.events(4))
    assume(like(query))
    table = dress.table(rows)
    rows = table.to_pylist()
    try:
        expected, everything = (judged(each, rows, semantics) for each in (query, unpicked(query)))
        program = bind(ready(query).plan(semantics), canonical_schema(table.schema), Columns("type", "at"))
        matches, metrics = _pushed(program, table, expected, rng, as_rows=dress == PLAIN, restored=restored)
    except CeriteError as error:
        if not refused(error):
            raise
        share.refused += 1
        return
    same(matches, expected, query, everything)
    if query.suppress is not None:
        assert metrics.matches == len(expected)
        assert metrics.suppressed in (None, len(everything) - len(expected))
    share.note(bool(expected))


def _pushed(
    program: Program, table: pa.Table, expected: list[Match], rng: Any, *, as_rows: bool, restored: bool
) -> tuple[list[Match], StreamMetrics]:
    """The matches of a stream that is fed bit by bit; where matches are not read, the judge's instead."""
    counting = rng.random() < 0.5
    stream = EventStream(program, counting=counting)
    matches: list[Match] = []
    at = 0
    while at < table.num_rows:
        size = rng.randint(0, 3)
        piece = table.slice(at, size)
        pushed = stream.push(piece.to_pylist() if as_rows else piece)
        if rng.random() < 0.8:
            some = list(pushed)
            assert pushed.count() == len(some)
            matches += some
        else:  # unread matches must not change what comes
            matches += judged_between(expected, at, at + size)
            if counting:
                assert pushed.count() == len(judged_between(expected, at, at + size))
        at += size
        if restored:
            again = EventStream(program, counting=counting)
            again.restore(stream.snapshot())
            stream = again
    return matches, stream.metrics


def judged_between(expected: list[Match], begin: int, end: int) -> list[Match]:
    return [match for match in expected if begin <= match.end < end]
