"""Random patterns in which one stateful pattern is watched inside another, or a strategy reads what is bound before."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from cerite.automaton.automaton import OTHERS
from cerite.core.errors import CeriteError
from cerite.pattern import (
    Complement,
    Concat,
    Event,
    Iteration,
    Named,
    Pattern,
    Project,
    QuerySpec,
    Select,
    Sequence,
    Size,
    Strategy,
    Union,
    Window,
)
from cerite.pattern.check import check
from cerite.pattern.variables import bound
from cerite.predicate.expression import Attribute, Comparison, Expression, Reference
from tests.properties.agreement import planned

Scope = tuple[str, ...]
STRATEGIES = (Strategy.NEXT, Strategy.LAST, Strategy.MAX)


def is_nested(query: QuerySpec) -> bool:
    """Whether the engine runs it and watches something that is nested or that reads what is bound around it."""
    plan = planned(query)
    return plan is not None and (
        plan.automaton.depth > 1 or any(each.kind == OTHERS for each in plan.automaton.watchers)
    )


@cache
def _compared(scope: Scope) -> st.SearchStrategy[Expression]:
    own = st.sampled_from(("id", "price")).map(Attribute)
    other = st.builds(Reference, st.sampled_from(scope), st.sampled_from(("id", "price")))
    return st.builds(Comparison, st.sampled_from(["=", "=", "<=", ">=", "!="]), own, other)


@cache
@st.composite
def _event(draw: st.DrawFn, scope: Scope, name: str) -> Pattern:
    """One event under a name of its own, which often reads what was bound before."""
    reads = bool(scope) and draw(st.integers(0, 1)) == 1
    return Named(Event(draw(st.sampled_from("AABBC")), draw(_compared(scope)) if reads else None), name)


@cache
@st.composite
def _sequence(draw: st.DrawFn, scope: Scope, depth: int, *, gaps: bool) -> Pattern:
    """Two or three parts, here and there with a NOT between them."""
    parts: list[Pattern] = []
    absent: list[tuple[Pattern, ...]] = []
    known = scope
    for index in range(draw(st.integers(2, 3))):
        if index:
            negated = gaps and draw(st.integers(0, 2)) == 0
            absent.append((draw(_part(known, depth - 1)),) if negated else ())
        part = draw(_event(known, f"{'uvw'[index]}{depth}" if draw(st.integers(0, 9)) else "x"))
        if depth and draw(st.integers(0, 3)) == 0:
            part = draw(_part(known, depth - 1))
        parts.append(part)
        known = tuple(sorted({*known, *(name for name in bound(part) if name not in "ABC")}))
    return Sequence(tuple(parts), tuple(absent))


@cache
@st.composite
def _part(draw: st.DrawFn, scope: Scope, depth: int) -> Pattern:
    """Something that is watched if it is negated or selected: it compares its events, has a window or a strategy."""
    if depth <= 0:
        return draw(_sequence(scope, 0, gaps=False) | _event(scope, "v0"))
    inner = draw(_sequence(scope, depth, gaps=True))
    shape = draw(st.integers(0, 11))
    if shape <= 4:
        return Select(draw(st.sampled_from(STRATEGIES)), inner)
    if shape == 5:
        return Select(draw(st.sampled_from(STRATEGIES)), Select(draw(st.sampled_from(STRATEGIES)), inner))
    if shape == 6:
        return Window(inner, draw(st.integers(2, 5).map(Size.events) | st.just(Size(2, "milliseconds"))))
    if shape == 7:
        return Union((inner, draw(_event(scope, "u0"))))
    if shape == 8:
        return Iteration(inner, 1, draw(st.sampled_from((None, 2))), draw(st.booleans()))
    if shape == 9:
        return Concat((Event(None), Complement(inner), Event(None)))
    names = sorted(bound(inner) & {f"{letter}{depth}" for letter in "uvw"})
    shown = Project(inner, tuple(draw(st.lists(st.sampled_from(names), unique=True, min_size=1)))) if names else inner
    return shown if shape == 10 else Iteration(shown, 1, 2)


@cache
@st.composite
def _patterns(draw: st.DrawFn) -> Pattern:
    first = Named(Event(draw(st.sampled_from("AAB"))), "x")
    part = draw(_part(("x",), draw(st.integers(1, 2))))
    shape = draw(st.integers(0, 5))
    if shape <= 1:
        return Sequence((first, draw(_event(("x",), "y"))), ((part,),))
    if shape <= 3:
        return Sequence((first, Select(draw(st.sampled_from(STRATEGIES)), part)))
    if shape == 4:
        return Sequence((first, part, draw(_event(("x",), "y"))))
    middle = Iteration(draw(_event(("x",), "z")), 0, 1)
    other = draw(_part(("x",), 1))
    return Sequence((first, middle, draw(_event(("x",), "y"))), ((part,), (other,)))


@cache
def nested_patterns() -> st.SearchStrategy[Pattern]:
    """Such patterns, as far as they pass the checks."""

    def sound(pattern: Pattern) -> bool:
        try:
            check(QuerySpec(pattern, within=Size.events(9)))
        except CeriteError:
            return False
        return is_nested(QuerySpec(pattern, within=Size.events(9)))

    return _patterns().filter(sound)
