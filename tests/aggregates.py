"""Random patterns with aggregates in conditions on events and on whole patterns, on the streams of `strategies`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from cerite.core.errors import CeriteError
from cerite.pattern import (
    Concat,
    Event,
    Filter,
    Having,
    Iteration,
    Named,
    On,
    Pattern,
    QuerySpec,
    Sequence,
    Size,
    Union,
    transform,
)
from cerite.pattern.check import check
from cerite.pattern.nodes import conditions_of
from cerite.pattern.variables import bound
from cerite.predicate import expression as ex
from cerite.predicate.expression import aggregates as aggregates_of
from cerite.predicate.expression import transform as changed
from tests import strategies as random

OPERATORS = st.sampled_from([">=", "<=", ">", "<", "=", "!="])
NUMBERS = ("SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")
Names = tuple[str, ...]


@cache
def of_numbers(names: Names) -> st.SearchStrategy[ex.Expression]:
    """One number for all events of a variable."""
    plain = st.builds(ex.Aggregate, st.sampled_from(NUMBERS), st.sampled_from(names), st.sampled_from(("id", "price")))
    return plain | plain | counted(names) | computed(names)


@cache
def computed(names: Names) -> st.SearchStrategy[ex.Expression]:
    """An aggregate of a value that is computed from each event."""
    own = st.sampled_from(("id", "price")).map(ex.Attribute)
    of = st.builds(ex.Arithmetic, st.sampled_from("+-*/"), own, own | st.integers(1, 2).map(ex.Literal)).map(
        ex.Computed
    )
    functions = st.sampled_from(("COUNT", *NUMBERS))
    return st.builds(ex.Aggregate, functions, st.sampled_from(names), st.none(), st.just(False), of=of)


@cache
def counted(names: Names) -> st.SearchStrategy[ex.Expression]:
    attributes = st.sampled_from((None, None, "id", "price", "name"))
    return st.builds(ex.Aggregate, st.just("COUNT"), st.sampled_from(names), attributes)


@cache
def different_values(names: Names) -> st.SearchStrategy[ex.Expression]:
    """A comparison of how many different values there are with a number."""
    attributes = st.sampled_from(("id", "price", "name"))
    apart = st.builds(ex.Aggregate, st.just("COUNT"), st.sampled_from(names), attributes, st.just(True))
    return st.builds(ex.Comparison, OPERATORS, apart, st.integers(0, 3).map(ex.Literal))


@cache
def wholes(names: Names) -> st.SearchStrategy[ex.Expression]:
    """A condition on a whole pattern that binds these variables."""
    number = of_numbers(names)
    limits = st.integers(0, 3).map(ex.Literal) | st.sampled_from([0.5, 1.5]).map(ex.Literal)
    other = st.builds(ex.Reference, st.sampled_from(names), st.sampled_from(("id", "price"))) | number
    computed = st.builds(ex.Arithmetic, st.sampled_from("+-*/"), number, other | limits)
    text = st.builds(ex.Aggregate, st.sampled_from(("FIRST", "LAST")), st.sampled_from(names), st.just("name"))
    edge = st.builds(ex.Aggregate, st.sampled_from(("MIN", "MAX")), st.sampled_from(names), st.just("name"))
    every = st.just(ex.Aggregate("COUNT", None))
    short: st.SearchStrategy[ex.Expression] = (
        st.builds(ex.Comparison, OPERATORS, counted(names), st.integers(0, 3).map(ex.Literal))
        | st.builds(ex.Comparison, OPERATORS, number, limits)
        | st.builds(ex.Comparison, OPERATORS, number, other)
        | st.builds(ex.Comparison, OPERATORS, computed, limits)
    )
    different = different_values(names)
    rare = (
        st.builds(ex.Comparison, st.sampled_from(("=", "!=")), text, text)
        | st.builds(ex.Comparison, OPERATORS, edge, text | edge | st.sampled_from(("a", "b")).map(ex.Literal))
        | st.builds(ex.Comparison, OPERATORS, every, st.integers(1, 4).map(ex.Literal) | number)
        | different
        | st.builds(ex.And, st.tuples(different, short))
        | (number | text).map(ex.IsNull)
        | short.map(ex.Not)
        | st.builds(ex.Or, st.tuples(short, short))
        | st.builds(ex.And, st.tuples(short, short))
    )
    return short | short | short | rare


@cache
def running(own: str, names: Names) -> st.SearchStrategy[ex.Expression]:
    """A condition on an event of `own` that reads all earlier events of these variables."""
    number = of_numbers(names)
    value = st.sampled_from(("id", "price")).map(ex.Attribute)
    computed = st.builds(ex.Arithmetic, st.sampled_from("+-*"), number, value | st.integers(1, 2).map(ex.Literal))
    short: st.SearchStrategy[ex.Expression] = st.builds(ex.Comparison, OPERATORS, value, number | computed)
    first = ex.Comparison("=", ex.Aggregate("COUNT", own), ex.Literal(0))
    edge = st.builds(ex.Aggregate, st.sampled_from(("MIN", "MAX")), st.sampled_from(names), st.just("name"))
    short |= st.builds(ex.Comparison, OPERATORS, st.just(ex.Attribute("name")), edge)
    opened = short.map(lambda each: ex.Or((first, each))) if own in names else short
    different = different_values(names)
    several = st.builds(ex.And, st.tuples(opened, opened)) | st.builds(ex.Or, st.tuples(different, short))
    return opened | opened | short | different | several


@cache
@st.composite
def _plain(draw: st.DrawFn) -> Pattern:
    """`A AS x ; (B AS y)+ ; C AS z` and patterns like it, mostly with matches."""
    first: Pattern = Named(Event(draw(st.sampled_from(("A", "B", None)))), "x")
    kind = draw(st.sampled_from(("B", "B", "A", None)))
    inner: Pattern = Named(Event(kind), "y")
    if draw(st.integers(0, 3)) == 0:
        inner = Union((inner, Named(Event("C"), draw(st.sampled_from("yz")))))
    if draw(st.integers(0, 4)) == 0:
        inner = Sequence((inner, Event(draw(st.sampled_from("AC")))))
    if draw(st.booleans()):
        inner = Filter(inner, (On("y", draw(running("y", draw(st.sampled_from((("y",), ("x", "y"), ("x",))))))),))
    least, most = draw(st.sampled_from([(1, None), (1, None), (1, None), (0, None), (2, None), (1, 3)]))
    many: Pattern = Iteration(inner, least, most, draw(st.booleans()))
    if draw(st.integers(0, 2)) == 0:
        many = Having(many, (draw(wholes(("y",))),))
    if draw(st.integers(0, 4)) == 0:
        many = Iteration(many, 1, draw(st.sampled_from((None, 2))), draw(st.booleans()))
    last: Pattern = Named(Event(draw(st.sampled_from(("C", "B", None)))), "z")
    if draw(st.booleans()):
        last = Filter(last, (On("z", draw(running("z", draw(st.sampled_from((("y",), ("x", "y"))))))),))
    parts = draw(st.sampled_from(((many,), (first, many), (many, last), (first, many, last))))
    whole: Pattern = parts[0] if len(parts) == 1 else draw(st.sampled_from((Sequence, Sequence, Concat)))(parts)
    names = tuple(sorted(bound(whole) & {"x", "y", "z"}))
    if draw(st.booleans()) or not _has_aggregate(whole):
        whole = Having(whole, tuple(draw(st.lists(wholes(names), min_size=1, max_size=2))))
    return whole


@cache
@st.composite
def _odd(draw: st.DrawFn) -> Pattern:
    """Any pattern with registers, some references turned into aggregates and some parts filtered as a whole."""

    def reading(node: ex.Expression) -> ex.Expression:
        if not isinstance(node, ex.Reference) or node.name not in ("id", "price") or draw(st.booleans()):
            return node
        return ex.Aggregate(draw(st.sampled_from(NUMBERS)), node.variable, node.name)

    def change(node: Pattern) -> Pattern:
        if isinstance(node, Event) and node.condition is not None:
            return replace(node, condition=changed(node.condition, reading))
        if isinstance(node, Filter):
            on = tuple(replace(each, condition=changed(each.condition, reading)) for each in node.conditions)
            return replace(node, conditions=on)
        names = tuple(sorted(bound(node) & {"x", "y", "z"}))
        if not names or isinstance(node, (Event, Named)) or draw(st.integers(0, 2)):
            return node
        return Having(node, (draw(wholes(names)),))

    return transform(draw(random.register_patterns(3)), change)


def _has_aggregate(pattern: Pattern) -> bool:
    return any(aggregates_of(condition) for condition in conditions_of(pattern))


def has_aggregate(query: QuerySpec) -> bool:
    """Whether some condition of the query has an aggregate."""
    return _has_aggregate(query.where)


@cache
def aggregate_patterns() -> st.SearchStrategy[Pattern]:
    """Patterns that pass the checks and have an aggregate."""

    def sound(pattern: Pattern) -> bool:
        try:
            check(QuerySpec(pattern, within=Size.events(100)))
        except CeriteError:
            return False
        return _has_aggregate(pattern)

    return (_plain() | _plain() | _odd()).filter(sound)
