"""What `check` says can never match has no match: random patterns and streams, by the judge."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cerite.core.errors import CeriteError
from cerite.language.ceql import parse_query
from cerite.pattern import Concat, Event, Filter, Iteration, Named, Pattern, QuerySpec, Sequence, Size, Union
from cerite.pattern.check import check
from cerite.pattern.never import reason
from cerite.pattern.nodes import On
from cerite.pattern.variables import bound
from cerite.predicate.expression import Attribute, Comparison, Reference
from tests import strategies as random
from tests.aggregates import aggregate_patterns
from tests.properties.agreement import Rows, cases, judged
from tests.telling import Share, often

PATTERNS = random.checked_patterns() | random.register_patterns(3) | aggregate_patterns()


@cases(often(500), PATTERNS, random.streams(6, random.full_rows | random.rows), st.integers(2, 5), least=1 / 10)
def test_nothing_matches_what_can_never_match(share: Share, pattern: Pattern, rows: Rows, size: int) -> None:
    query = QuerySpec(pattern, within=Size.events(size))
    try:
        check(query)
    except CeriteError:
        assume(False)
    why = reason(query)
    share.note(why is not None)
    if why is not None:
        assert judged(query, rows, "valuations") == []


# ---------------------------------------------------------------- filters whose names meet in the pattern they filter
EVENTS = st.sampled_from("AB").map(Event)


def _larger(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    gaps = several.map(lambda parts: Sequence(parts, ((),) * (len(parts) - 1)))
    bounds = st.sampled_from([(1, None), (0, None), (0, 1), (2, 2), (1, 2)])
    repeated = st.builds(lambda operand, most: Iteration(operand, *most), inner, bounds)
    return gaps | several.map(Concat) | several.map(Union) | repeated | st.builds(Named, inner, st.sampled_from("xy"))


SMALL = st.recursive(EVENTS, _larger, max_leaves=5)


@st.composite
def reading_filters(draw: st.DrawFn) -> Pattern:
    """A filter on one name of a pattern that reads another of its names."""
    operand = draw(SMALL)
    names = sorted(bound(operand))
    one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    condition = Comparison(draw(st.sampled_from(["=", ">=", "<="])), Attribute("id"), Reference(other, "id"))
    return Filter(operand, (On(one, condition),))


def _sound(pattern: Pattern) -> bool:
    try:
        check(QuerySpec(pattern))
    except CeriteError:
        return False
    return True


STREAMS = st.lists(st.sampled_from("AB"), min_size=1, max_size=7)
counted: Counter[bool] = Counter()


@often(500)
@given(reading_filters().filter(_sound), STREAMS)
def _nothing_matches(pattern: Pattern, types: list[str]) -> None:
    query = QuerySpec(pattern)
    why = reason(query)
    matches = judged(query, [{"type": kind, "id": 1, "at": at} for at, kind in enumerate(types)], "valuations")
    assert why is None or not [each for each in matches if each.positions], why
    counted[why is not None] += 1


def test_a_filter_that_reads_before_anything_is_bound_never_matches() -> None:
    """And the warning is not rare: a twentieth of such filters are warned about."""
    counted.clear()
    _nothing_matches()
    assert counted[True] > (counted[True] + counted[False]) / 20, counted


NEVER = {
    "BUY+ AS y FILTER y[price > BUY.price]": "`BUY.price` is read before anything is bound to `BUY`",
    "BUY AS y ; BUY AS z FILTER BUY[y.price <= price]": "`y.price` is read before anything is bound to `y`",
    "(A ; BUY+) AS y FILTER y[price > A.price]": "`A.price` is read before anything is bound to `A`",
    "BUY AS y ; BUY AS z FILTER z[y.price <= price]": None,
    "BUY? ; BUY+ AS y FILTER y[price > BUY.price]": None,
    "BUY AS y FILTER y[price > 3]": None,
}


@pytest.mark.parametrize("pattern", NEVER)
def test_check_warns_of_the_first_event_that_has_none_before_it(pattern: str) -> None:
    why = reason(parse_query(f"SELECT * FROM S WHERE {pattern} WITHIN 3 EVENTS"))
    said = NEVER[pattern]
    assert why is None if said is None else why is not None and said in why.message
