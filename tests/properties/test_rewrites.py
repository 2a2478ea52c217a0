"""Every rewrite keeps the meaning: differential tests of a pattern and its rewritten form on the judge, and, where
the papers give a second definition, against that one (`oracle_…`)."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from cerite.pattern import (
    Event,
    Filter,
    Intersection,
    Iteration,
    Named,
    On,
    Pattern,
    Permute,
    Project,
    Select,
    Sequence,
    SkipAny,
    SkipNext,
    Strategy,
    Union,
    Window,
)
from cerite.pattern.nodes import walk
from cerite.pattern.query import QuerySpec
from cerite.pattern.references import orient_references, resolve
from cerite.pattern.rewrite.lp import is_lp_normal, lp_normal
from cerite.pattern.rewrite.orders import expand_permute
from cerite.pattern.rewrite.safe import is_safe, make_safe
from cerite.pattern.rewrite.skips import expand_skips
from cerite.pattern.variables import bound, nullable
from cerite.predicate.evaluate import holds
from cerite.predicate.expression import Expression, references
from cerite.reference.semantics import Stream, matches
from tests import strategies as random
from tests.oracles import icdt_matches
from tests.properties.agreement import cases
from tests.telling import Share, often, telling

MANY = often(500)
Rows = list[dict[str, Any]]


def same(one: Pattern, two: Pattern, rows: Rows) -> bool:
    """Assert that both have the same matches; returns whether there are any."""
    stream = Stream.of(rows, time="at")
    actual = matches(one, stream)
    event("matches" if actual else "no match")
    assert actual == matches(two, stream)
    return bool(actual)


STREAMS = random.streams(5) | random.streams(5, random.full_rows)


@st.composite
def filtered_patterns(draw: st.DrawFn) -> Pattern:
    """A filter on any variable of any pattern."""
    operand = draw(random.checked_patterns(size=3))
    names = sorted(bound(operand))
    assume(names)
    on = st.builds(On, st.sampled_from(names), random.likely_conditions())
    return Filter(operand, tuple(draw(st.lists(on, min_size=1, max_size=2))))


@cases(MANY, filtered_patterns(), STREAMS)
def test_theorem_3_lp_normal_form(share: Share, pattern: Pattern, rows: Rows) -> None:
    query, rows = telling(QuerySpec(pattern), rows, lambda query, rows: matches(query, Stream.of(rows, time="at")))
    pattern = query.where
    normal = lp_normal(pattern)
    assert is_lp_normal(normal)
    share.note(same(pattern, normal, rows))


NAMES = ("u", "v", "w")


@st.composite
def forward_sequences(draw: st.DrawFn) -> tuple[Sequence, On, Expression]:
    """`A AS u ; B AS v ; C AS w` with one condition on any of them that reads any others."""
    parts: list[Pattern] = [Named(Event(draw(st.sampled_from("ABB"))), name) for name in NAMES]
    variable = draw(st.sampled_from(NAMES))
    condition = draw(random.comparisons(tuple(name for name in NAMES if name != variable)))
    return Sequence(tuple(parts)), On(variable, condition), condition


@st.composite
def forward_patterns(draw: st.DrawFn) -> Pattern:
    """The same somewhere inside another pattern."""
    sequence, on, _ = draw(forward_sequences())
    pattern: Pattern = Filter(sequence, (on,))
    other = Event(draw(st.sampled_from(random.TYPES)))
    around = {
        "nothing": pattern,
        "a name": Named(pattern, "x"),
        "a window": Window(pattern, draw(random.sizes)),
        "a strategy": Select(draw(st.sampled_from(list(Strategy))), pattern),
        "a projection": Project(pattern, NAMES[:2]),
        "an iteration": Iteration(pattern, draw(st.integers(0, 2)), None, draw(st.booleans())),
        "a sequence": Sequence((other, pattern), ((Event("C"),),)),
        "a union": Union((pattern, other)),
        "a conjunction": Intersection((pattern, Iteration(Event(None)))),
    }
    return around[draw(st.sampled_from(sorted(around)))]


@MANY
@given(forward_patterns() | random.checked_patterns(), random.streams(6, random.full_rows))
def test_references_turned_to_the_later_event(pattern: Pattern, rows: Rows) -> None:
    turned = orient_references(pattern)
    event("turned" if turned != pattern else "looks back already")
    for node in walk(turned):
        if isinstance(node, Filter):
            assert not any(each.later for on in node.conditions for each in references(on.condition))
    same(pattern, turned, rows)


@MANY
@given(forward_sequences(), random.streams(6, random.full_rows) | random.streams(), st.booleans())
def test_oracle_a_reference_reads_the_other_event_whichever_comes_first(
    rewritten: tuple[Sequence, On, Expression], rows: Rows, inside: bool
) -> None:
    """ICDT's FILTER P(x, z): both events are known in the end, so their order does not matter."""
    sequence, on, condition = rewritten
    pattern: Pattern = Filter(sequence, (on,))
    if inside:  # the same filter directly on its event, looking ahead out of the parentheses
        parts = tuple(Filter(part, (on,)) if part.variable == on.variable else part for part in sequence.parts)  # type: ignore[attr-defined]
        pattern = Sequence(parts)
    expected = []
    for match in matches(sequence, rows):
        at = {name: rows[match.variables[name][0]] for name in NAMES}
        if holds(condition, at[on.variable], lambda reference, at=at: at[reference.variable]):  # type: ignore[misc]
            expected.append(match)
    event("matches" if expected else "no match")
    assert matches(pattern, rows) == expected
    assert matches(orient_references(pattern), rows) == expected
    assert matches(resolve(pattern), rows) == expected


@MANY
@given(st.lists(random.checked_patterns(size=2), min_size=1, max_size=3), STREAMS)
def test_permute_is_any_order(parts: list[Pattern], rows: Rows) -> None:
    permuted = Permute(tuple(parts))
    same(permuted, expand_permute(permuted), rows)
    actual = matches(permuted, rows and Stream.of(rows, time="at"))
    assert actual == matches(Permute(tuple(reversed(parts))), rows and Stream.of(rows, time="at"))


PARTS = st.lists(random.checked_patterns(size=2).filter(lambda part: not nullable(part)), min_size=2, max_size=3)


@MANY
@given(PARTS, STREAMS)
def test_definition_44_skip_till_any_is_the_gapped_sequence(parts: list[Pattern], rows: Rows) -> None:
    skipping = SkipAny(tuple(parts))
    assume(random.meaningful(skipping) == skipping)
    same(skipping, expand_skips(skipping), rows)
    same(skipping, Sequence(tuple(parts)), rows)


@MANY
@given(PARTS, STREAMS)
def test_definition_45_skip_till_next_is_negation_in_the_gap(parts: list[Pattern], rows: Rows) -> None:
    skipping = SkipNext(tuple(parts))
    negating = Sequence(tuple(parts), tuple((part,) for part in parts[1:]))
    assume(random.meaningful(skipping) == skipping and random.meaningful(negating) == negating)
    same(skipping, expand_skips(skipping), rows)
    same(skipping, negating, rows)


@MANY
@given(random.checked_patterns(size=2), st.sampled_from([(0, None), (1, None), (2, 3)]), STREAMS)
def test_skip_till_any_of_an_iteration_is_the_gapped_iteration(
    part: Pattern, bounds: tuple[int, int | None], rows: Rows
) -> None:
    assume(not nullable(part))
    near, far = Iteration(part, *bounds, contiguous=True), Iteration(part, *bounds)
    same(SkipAny((near,)), far, rows)


@MANY
@given(random.checked_patterns(size=2), STREAMS)
def test_skip_till_next_of_an_iteration_has_the_gap_between_its_repetitions(part: Pattern, rows: Rows) -> None:
    """@(e{2,3}) is @(e, e) or @(e, e, e)."""
    skipping = SkipNext((Iteration(part, 2, 3, contiguous=True),))
    unrolled = Union(tuple(Sequence((part,) * times, ((part,),) * (times - 1)) for times in (2, 3)))
    assume(not nullable(part) and random.meaningful(skipping) == skipping and random.meaningful(unrolled) == unrolled)
    same(skipping, expand_skips(skipping), rows)
    same(skipping, unrolled, rows)


def core_formulas() -> st.SearchStrategy[Pattern]:
    """Core-CEL: R AS x, unary FILTER, OR, ;, +."""
    leaf: st.SearchStrategy[Pattern] = st.builds(
        Named, st.sampled_from("AB").map(Event), st.sampled_from(random.VARIABLES)
    )

    @st.composite
    def filtered(draw: st.DrawFn, inner: st.SearchStrategy[Pattern]) -> Pattern:
        operand = draw(inner)
        names = sorted(name for name in _surely(operand))
        if not names:
            return operand
        return Filter(operand, (On(draw(st.sampled_from(names)), draw(random.conditions())),))

    return st.recursive(
        leaf,
        lambda inner: (
            random.many(inner, most=2).map(Union)
            | random.many(inner, most=3).map(Sequence)
            | random.many(inner, most=2).map(Sequence)
            | inner.map(Iteration)
            | filtered(inner)
        ),
        max_leaves=5,
    )


def _surely(pattern: Pattern) -> frozenset[str]:
    """ICDT's bound(φ), for well-formed filters."""
    match pattern:
        case Named(variable=variable):
            return frozenset((variable,))
        case Union(parts=parts):
            return frozenset.intersection(*map(_surely, parts))
        case Iteration():
            return frozenset()
        case _:
            return frozenset().union(*map(_surely, pattern.children))


@MANY
@given(core_formulas(), random.streams(4))
def test_oracle_theorem_2_safe_formulas(pattern: Pattern, rows: Rows) -> None:
    safe = make_safe(pattern)
    assert is_safe(safe)
    actual = icdt_matches(pattern, rows)
    event("matches" if actual else "no match")
    assert icdt_matches(safe, rows) == actual


@MANY
@given(core_formulas(), random.streams(4))
def test_oracle_the_judge_agrees_with_icdt_on_safe_formulas(pattern: Pattern, rows: Rows) -> None:
    """On safe formulas sets of events and single events are the same thing, so both papers' semantics agree."""
    assume(is_safe(pattern))
    actual = {frozenset(match.positions) for match in matches(pattern, rows, semantics="complex-events")}
    assert actual == icdt_matches(pattern, rows)
