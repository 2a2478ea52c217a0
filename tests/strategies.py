"""Random conditions, patterns, queries and streams for the property tests.

Conditions are built by kind, so that they never clash on the streams built here: `id` and `price` are numbers, `name`
is a string, `ok` a boolean; any of them may be NULL or missing.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

from hypothesis import strategies as st

from cerite.core.errors import CeriteError
from cerite.pattern import (
    Complement,
    Concat,
    Consume,
    Empty,
    Event,
    Filter,
    Intersection,
    Item,
    Iteration,
    Named,
    Nothing,
    On,
    Pattern,
    Permute,
    Project,
    QuerySpec,
    Select,
    Sequence,
    Size,
    SkipAny,
    SkipNext,
    Strategy,
    Suppress,
    Union,
    Window,
    transform,
)
from cerite.pattern.check import check
from cerite.pattern.variables import bound
from cerite.predicate import expression as ex
from cerite.predicate.functions import PARTS, ROUNDING

TYPES = ("A", "B", "C")
VARIABLES = ("x", "y", "z")
ODD_NAMES = ("from", "stock time", "Größe", "日本", "a`b", "_", "SELECT", "q-1", "🦊", "next", "null", "true")

# ---------------------------------------------------------------- conditions
ints = st.integers(-3, 3)
floats = st.sampled_from([-1.5, 0.0, 0.5, 2.0, 1e20, 2.5e-7])
strings = st.text(alphabet="ab'\"`%_\\é🦊 -", max_size=4)


@cache
def _sources(names: tuple[str, ...], readable: tuple[str, ...]) -> st.SearchStrategy[ex.Expression]:
    own: st.SearchStrategy[ex.Expression] = st.sampled_from(names).map(ex.Attribute)
    if not readable:
        return own
    return own | st.builds(ex.Reference, st.sampled_from(readable), st.sampled_from(names))


@cache
def numbers(readable: tuple[str, ...] = ()) -> st.SearchStrategy[ex.Expression]:
    leaves = _sources(("id", "price"), readable) | (ints | floats).map(ex.Literal)
    return st.recursive(
        leaves,
        lambda inner: inner.map(ex.Negative) | st.builds(ex.Arithmetic, st.sampled_from("+-*/%"), inner, inner),
        max_leaves=3,
    )


@cache
def texts(readable: tuple[str, ...] = ()) -> st.SearchStrategy[ex.Expression]:
    return _sources(("name",), readable) | strings.map(ex.Literal)


@cache
def conditions(readable: tuple[str, ...] = ()) -> st.SearchStrategy[ex.Expression]:
    """A condition that may read these variables."""
    operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    number, text = numbers(readable), texts(readable)
    interval = st.tuples(ints, ints).map(lambda ends: ex.Interval(ex.Literal(min(ends)), ex.Literal(max(ends))))
    items = st.lists(ints.map(ex.Literal) | floats.map(ex.Literal) | interval, min_size=1, max_size=3).map(tuple)
    leaves = (
        st.builds(ex.Comparison, operators, number, number)
        | st.builds(ex.Comparison, operators, text, text)
        | st.builds(ex.In, number, items)
        | st.builds(ex.In, text, st.lists(strings.map(ex.Literal), min_size=1, max_size=2).map(tuple))
        | st.builds(ex.InRange, number, number, number)
        | st.builds(ex.Like, text, strings)
        | (number | text).map(ex.IsNull)
        | _sources(("ok",), readable)
        | st.booleans().map(ex.Literal)
    )
    return st.recursive(
        leaves,
        lambda inner: (
            inner.map(ex.Not)
            | inner.map(ex.IsTrue)
            | st.builds(ex.And, st.lists(inner, min_size=2, max_size=3).map(tuple))
            | st.builds(ex.Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
        ),
        max_leaves=4,
    )


@cache
def likely_conditions(readable: tuple[str, ...] = ()) -> st.SearchStrategy[ex.Expression]:
    """Short conditions that often hold on `streams`, so that patterns have matches to disagree about."""
    limits = ints.map(ex.Literal) | _sources(("id", "price"), readable)
    operators = st.sampled_from([">=", "<=", "!=", "=", ">"])
    short = st.builds(ex.Comparison, operators, st.sampled_from(("id", "price")).map(ex.Attribute), limits)
    return short | short | short | conditions(readable)


# ---------------------------------------------------------------- functions and times
SPELLINGS = ("", "a", "AB", "ab", "ß", "É", "ΑΣ", "İ", "日本")
WRITTEN_TIMES = ("1970-01-01", "2024-03-31T03:00:00+02:00", "1969-12-31T23:59:59.999999", "2024-05-01T12:30:00")


@cache
def _functions(readable: tuple[str, ...]) -> tuple[st.SearchStrategy[ex.Expression], ...]:
    """Numbers, texts, instants and durations as results of functions and the arithmetic of time."""
    numbers = _sources(("id", "price"), readable) | (ints | floats).map(ex.Literal)
    texts = _sources(("name", "other"), readable) | st.sampled_from(SPELLINGS).map(ex.Literal)
    instants = _sources(("at", "until"), readable)
    written = st.sampled_from([0, 1, 1_500, 10**6, 86_400 * 10**6, -(10**9), 10**17, 3 * 10**18])
    durations: st.SearchStrategy[ex.Expression] = written.map(lambda count: ex.Literal(timedelta(microseconds=count)))
    between = st.builds(ex.Arithmetic, st.just("-"), instants, instants)
    durations = durations | between | st.builds(ex.Arithmetic, st.sampled_from("+-"), durations, between)
    durations = durations | durations.map(ex.Negative) | _calls(("abs",), durations)
    moved = st.builds(ex.Arithmetic, st.sampled_from("+-"), instants, durations)
    instants = instants | moved | st.builds(ex.Call, st.just("coalesce"), st.tuples(instants, instants | moved))
    texts = texts | _calls(("lower", "upper"), texts)
    texts = texts | st.builds(ex.Call, st.just("coalesce"), st.lists(texts, min_size=2, max_size=3).map(tuple))
    numbers = numbers | _calls(("abs", *ROUNDING), numbers)
    whole = ints.map(ex.Literal)  # among floats, whole numbers must be literals
    chosen = st.builds(
        ex.Call, st.just("coalesce"), st.tuples(_calls(("floor", "abs"), _sources(("price",), readable)), whole)
    )
    chosen = chosen | st.builds(ex.Call, st.just("coalesce"), st.tuples(*(2 * (_sources(("id",), readable),)), whole))
    quotients = st.builds(ex.Arithmetic, st.just("/"), durations, durations)
    numbers = numbers | chosen | quotients | _calls(PARTS, instants) | _calls(("length",), texts)
    return numbers | st.builds(ex.Arithmetic, st.sampled_from("+-*/%"), numbers, numbers), texts, instants, durations


def _calls(names: tuple[str, ...], of: st.SearchStrategy[ex.Expression]) -> st.SearchStrategy[ex.Expression]:
    return st.builds(ex.Call, st.sampled_from(names), st.tuples(of))


@cache
def function_conditions(readable: tuple[str, ...] = ()) -> st.SearchStrategy[ex.Expression]:
    """Conditions on results of functions and the arithmetic of time."""
    number, text, instant, duration = _functions(readable)
    operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    whole = st.sampled_from([-3, 0, 1, 2, 5, 12, 59, 1969, 2024]).map(ex.Literal)
    truth = _sources(("ok",), readable)
    simple: st.SearchStrategy[ex.Expression] = (
        st.builds(ex.Comparison, operators, number, number | whole)
        | st.builds(ex.Comparison, operators, text, text)
        | st.builds(ex.Comparison, operators, instant, instant | st.sampled_from(WRITTEN_TIMES).map(ex.Literal))
        | st.builds(ex.Comparison, operators, duration, duration)
        | st.builds(ex.InRange, duration, duration, duration)
        | st.builds(ex.In, number, st.lists(whole, min_size=1, max_size=10).map(tuple))
        | st.builds(ex.Like, text, strings)
        | (number | text | instant | duration).map(ex.IsNull)
        | st.builds(ex.Call, st.just("coalesce"), st.tuples(truth, truth | st.booleans().map(ex.Literal)))
    )
    return simple | st.builds(ex.And, st.tuples(simple, simple)) | simple.map(ex.Not)


# ---------------------------------------------------------------- patterns
sizes = (
    st.integers(2, 5).map(Size.events)
    | st.builds(Size, st.integers(0, 6), st.sampled_from(["milliseconds", "seconds"]))
    | st.builds(Size.of, st.just("price"), st.integers(0, 3) | st.just(0.5))
)


def many(inner: st.SearchStrategy[Pattern], least: int = 2, most: int = 3) -> st.SearchStrategy[tuple[Pattern, ...]]:
    return st.lists(inner, min_size=least, max_size=most).map(tuple)


def _iterations(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    counts = st.sampled_from([(1, None), (0, None), (0, 1), (2, None), (1, 2), (2, 2), (0, 2)])
    return st.builds(lambda part, count, near: Iteration(part, count[0], count[1], near), inner, counts, st.booleans())


@st.composite
def _sequences(draw: st.DrawFn, inner: st.SearchStrategy[Pattern], *, negation: bool) -> Pattern:
    parts = draw(many(inner))
    if not negation or draw(st.booleans()):
        return Sequence(parts)
    absent = tuple(draw(st.lists(inner, max_size=1).map(tuple)) for _ in parts[1:])
    return Sequence(parts, absent)


@st.composite
def _filters(draw: st.DrawFn, inner: st.SearchStrategy[Pattern], readable: tuple[str, ...]) -> Pattern:
    operand = draw(inner)
    names = sorted(bound(operand))
    if not names:
        return operand
    on = st.builds(On, st.sampled_from(names), likely_conditions(readable))
    return Filter(operand, tuple(draw(st.lists(on, min_size=1, max_size=2))))


@st.composite
def _projections(draw: st.DrawFn, inner: st.SearchStrategy[Pattern]) -> Pattern:
    operand = draw(inner)
    names = sorted(bound(operand))
    shown = draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) if names else []
    return Project(operand, tuple(shown))


@cache
def events(names: tuple[str, ...], readable: tuple[str, ...] = (), *, sremo: bool = True) -> st.SearchStrategy[Pattern]:
    """One event; with `sremo` also unmarked ones and registers."""
    types = st.sampled_from(TYPES) | st.none()
    plain: st.SearchStrategy[Pattern] = st.builds(Event, st.sampled_from(TYPES))
    named: st.SearchStrategy[Pattern] = st.builds(Named, plain, st.sampled_from(names))
    if not sremo:
        return plain | named
    condition = st.none() | likely_conditions(readable)
    full = st.builds(Event, types, condition, st.booleans(), st.none() | st.sampled_from(names))
    return plain | plain | named | named | full


@cache
def patterns(
    readable: tuple[str, ...] = (), *, names: tuple[str, ...] = VARIABLES, size: int = 6, sremo: bool = True
) -> st.SearchStrategy[Pattern]:
    """Any pattern of the algebra; without `sremo`, CEL with what docs/semantics.md adds."""
    leaves = events(names, readable, sremo=sremo)
    if sremo:
        leaves = leaves | st.sampled_from([Empty(), Nothing()])

    def grow(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
        pattern = (
            _sequences(inner, negation=True)
            | _sequences(inner, negation=False)
            | _sequences(inner, negation=False)
            | many(inner).map(Union)
            | many(inner).map(Union)
            | _iterations(inner)
            | many(inner).map(Concat)
            | many(inner, most=2).map(Intersection)
            | many(inner, most=2).map(Permute)
            | _iterations(inner)
            | st.builds(Named, inner, st.sampled_from(names))
            | _filters(inner, readable)
            | _filters(inner, ())
            | _projections(inner)
            | st.builds(Window, inner, sizes)
            | st.builds(Select, st.sampled_from(list(Strategy)), inner)
        )
        if sremo:
            pattern = pattern | inner.map(Complement) | many(inner, 1).map(SkipAny) | many(inner, 1).map(SkipNext)
        return pattern

    return st.recursive(leaves, grow, max_leaves=size)


@cache
def regular_patterns(size: int = 6) -> st.SearchStrategy[Pattern]:
    """Patterns whose conditions look at one event and that need no memory: what a CEA runs."""
    marked = events(VARIABLES, sremo=False) | st.builds(Event, st.sampled_from(TYPES) | st.none(), likely_conditions())
    inner_events = marked | marked | marked | st.builds(Event, st.none(), st.none(), st.just(False))

    @st.composite
    def sequences(draw: st.DrawFn, inner: st.SearchStrategy[Pattern]) -> Pattern:
        parts = draw(many(inner))
        if draw(st.integers(0, 3)):
            return Sequence(parts)
        negated = inner if draw(st.integers(0, 2)) == 0 else marked
        return Sequence(parts, tuple(draw(st.lists(negated, max_size=1).map(tuple)) for _ in parts[1:]))

    return st.recursive(
        inner_events,
        lambda inner: (
            sequences(inner)
            | sequences(inner)
            | many(inner).map(Union)
            | many(inner).map(Concat)
            | _iterations(inner)
            | _iterations(inner)
            | many(inner, most=2).map(Intersection)
            | many(inner, most=2).map(Permute)
            | st.builds(Named, inner, st.sampled_from(VARIABLES))
            | _filters(inner, ())
            | _projections(inner)
            | many(marked).map(SkipAny)
            | many(marked).map(SkipNext)
            | inner.map(lambda each: Concat((Event(None), Complement(each), Event(None))))  # alone it marks nothing
            | st.builds(Select, st.just(Strategy.STRICT), inner)
        ),
        max_leaves=size,
    )


def _without_references(pattern: Pattern) -> Pattern:
    def change(node: Pattern) -> Pattern:
        if isinstance(node, Event) and node.condition is not None and ex.variables(node.condition):
            return Event(node.type, None, node.output, node.register)
        if isinstance(node, Filter):
            conditions = tuple(on for on in node.conditions if not on.reads and on.variable in bound(node.operand))
            return Filter(node.operand, conditions) if conditions else node.operand
        return node

    return transform(pattern, change)


def meaningful(pattern: Pattern) -> Pattern | None:
    """The pattern if it passes the checks, else without its references, else None."""
    for candidate in (pattern, _without_references(pattern)):
        try:
            check(QuerySpec(candidate, within=Size.events(100)))
        except CeriteError:
            continue
        return candidate
    return None


@cache
def checked_patterns(*, size: int = 6, sremo: bool = True) -> st.SearchStrategy[Pattern]:
    """Patterns that pass the checks, with references between their variables where they can be read."""
    drawn = patterns((*VARIABLES, *TYPES[:2]), size=size, sremo=sremo).map(meaningful)
    return drawn.filter(lambda pattern: pattern is not None)  # type: ignore[return-value]


# ---------------------------------------------------------------- patterns with registers
Scope = tuple[str, ...]


@cache
def comparisons(readable: Scope) -> st.SearchStrategy[ex.Expression]:
    """A condition that reads another event: mostly one comparison, sometimes anything."""
    operators = st.sampled_from(["=", "=", "<=", ">=", "!=", "<", ">"])
    own = st.sampled_from(("id", "price")).map(ex.Attribute)
    other = st.builds(ex.Reference, st.sampled_from(readable), st.sampled_from(("id", "price")))
    shifted = st.builds(ex.Arithmetic, st.sampled_from("+-*"), other, ints.map(ex.Literal) | own | other)
    short = st.builds(ex.Comparison, operators, own, other)
    names = st.builds(ex.Comparison, operators, st.just(ex.Attribute("name")),
                      st.builds(ex.Reference, st.sampled_from(readable), st.just("name")))  # fmt: skip
    longer = st.builds(ex.Comparison, operators, own, shifted) | names | conditions(readable)
    both = st.lists(short | longer, min_size=2, max_size=2).map(lambda parts: ex.And(tuple(parts)))
    return short | short | short | short | longer | both


@cache
@st.composite
def _reading_event(draw: st.DrawFn, scope: Scope) -> Pattern:
    name = draw(st.sampled_from(VARIABLES))
    kind = draw(st.sampled_from(("A", "B", "B", "C", None)))
    named: Pattern = Named(Event(kind), name)
    if draw(st.integers(0, 5)) == 0:  # one event under three names, its type's among them
        named = Named(named, draw(st.sampled_from(VARIABLES)))
    if not scope or draw(st.integers(0, 3)) == 0:
        return named
    condition = draw(comparisons(scope))
    if draw(st.booleans()):
        return Filter(named, (On(draw(st.sampled_from((name, *sorted(bound(named))))), condition),))
    return Event(kind, condition, True, name)


@cache
@st.composite
def _reading(draw: st.DrawFn, scope: Scope, depth: int) -> Pattern:
    """A pattern whose conditions may read the variables in scope, and those that it has already bound."""
    shape = draw(st.integers(0, 9)) if depth else 0
    if shape <= 1:
        return draw(_reading_event(scope))
    if shape <= 5:
        return draw(_reading_sequence(scope, depth, contiguous=shape == 5))
    if shape == 6:
        again = tuple(sorted({*scope, draw(st.sampled_from(VARIABLES))}))
        part = draw(_reading(again, depth - 1))
        least, most = draw(st.sampled_from([(1, None), (1, None), (0, 1), (2, None), (1, 2)]))
        return Iteration(part, least, most, draw(st.integers(0, 3)) == 0)
    if shape == 7:
        return Union((draw(_reading(scope, depth - 1)), draw(_reading(scope, depth - 1))))
    inner = draw(_reading(scope, depth - 1))
    outer = draw(st.integers(0, 6))
    if outer == 0:
        return Intersection((inner, draw(_reading(scope, depth - 1))))
    if outer == 1:
        return Window(inner, draw(sizes))
    if outer == 2:
        inner = inner if draw(st.booleans()) else draw(_sometimes_bound(scope))
        return Select(draw(st.sampled_from(list(Strategy))), inner)
    if outer == 5:
        return Concat((Event(None), Complement(inner), Event(None)))
    if outer == 6:
        return draw(st.sampled_from((SkipAny, SkipNext)))((inner, draw(_reading(scope, depth - 1))))
    if outer == 3 and bound(inner):
        return Project(inner, tuple(draw(st.lists(st.sampled_from(sorted(bound(inner))), unique=True, max_size=2))))
    return Named(inner, draw(st.sampled_from(VARIABLES)))


@cache
@st.composite
def _sometimes_bound(draw: st.DrawFn, scope: Scope) -> Pattern:
    """A condition on the last event that reads a variable bound by only one way of matching, or by an outer pattern."""
    name = draw(st.sampled_from((*scope, *VARIABLES)))
    with_it, without = Named(Event(draw(st.sampled_from(("A", None)))), name), Event(draw(st.sampled_from(("A", None))))
    first: Pattern = Union((without, with_it))
    if draw(st.integers(0, 2)) == 0:
        first = Sequence((without, Iteration(with_it, 0, draw(st.sampled_from((1, None))))))
    between = (draw(_reading_event(scope)),) if draw(st.booleans()) else ()
    absent = tuple((draw(_reading_event((name,))),) if draw(st.integers(0, 4)) == 0 else () for _ in (first, *between))
    last = draw(st.sampled_from("BBC"))
    pattern = Sequence((first, *between, Event(last)), absent)
    return Filter(pattern, (On(last, draw(comparisons((name,)))),))


@cache
@st.composite
def _reading_sequence(draw: st.DrawFn, scope: Scope, depth: int, *, contiguous: bool) -> Pattern:
    parts: list[Pattern] = []
    absent: list[tuple[Pattern, ...]] = []
    for index in range(draw(st.integers(2, 3))):
        seen = {name for part in parts for name in bound(part) if name in VARIABLES or draw(st.integers(0, 3)) == 0}
        known = tuple(sorted({*scope, *seen}))
        if index:
            negated = not contiguous and draw(st.integers(0, 4)) == 0
            absent.append((draw(_reading(known, max(0, depth - 2))),) if negated else ())
        parts.append(draw(_reading(known, depth - 1)))
    pattern: Pattern = Concat(tuple(parts)) if contiguous else Sequence(tuple(parts), tuple(absent))
    names = sorted(bound(pattern))
    if draw(st.integers(0, 2)) or not names:
        return pattern
    # from outside a condition may wait for a later event, under any of its names, and read what encloses it
    on = st.builds(On, st.sampled_from(names), comparisons(tuple(sorted({*scope, *names}))))
    return Filter(pattern, tuple(draw(st.lists(on, min_size=1, max_size=2))))


@cache
def register_patterns(depth: int = 3) -> st.SearchStrategy[Pattern]:
    """Patterns most of whose conditions read other events."""

    def sound(pattern: Pattern) -> bool:
        try:
            check(QuerySpec(pattern, within=Size.events(100)))
        except CeriteError:
            return False
        return True

    return _after_an_event(depth).filter(sound)


@cache
@st.composite
def _after_an_event(draw: st.DrawFn, depth: int) -> Pattern:
    """A pattern that mostly begins with an event to read."""
    if draw(st.integers(0, 5)) == 0:
        return draw(_reading((), depth))
    first = Named(Event(draw(st.sampled_from("AAB"))), "x")
    then = draw(_reading(("x",), depth - 1))
    if draw(st.integers(0, 4)) == 0:
        return Sequence((first, then), ((draw(_reading(("x",), 1)),),))
    return Sequence((first, then))


# ---------------------------------------------------------------- queries and streams
_SILENCES = st.integers(1, 6).map(lambda amount: Size(amount, "milliseconds")) | st.just(Size(0.5, "seconds"))


@st.composite
def queries(draw: st.DrawFn, where: st.SearchStrategy[Pattern]) -> QuerySpec:
    """A query with random clauses around a pattern."""
    pattern = draw(where)
    names = sorted(bound(pattern))
    some = st.lists(st.sampled_from(names or [""]), unique=True, min_size=1, max_size=2)
    chosen: list[str] = draw(some) if names else []
    items = tuple(map(Item, chosen)) if draw(st.booleans()) and chosen else None
    return QuerySpec(
        pattern,
        items=items,
        strategy=draw(st.none() | st.sampled_from(list(Strategy))),
        partition=draw(st.sampled_from([(), (), ("id",), ("id", "name")])),
        within=draw(st.none() | sizes),
        consume=draw(st.sampled_from(list(Consume))),
        limit=draw(st.none() | st.integers(1, 3)),
        suppress=draw(st.none() | st.none() | st.builds(Suppress, _SILENCES, st.booleans())),
    )


rows = st.fixed_dictionaries(
    {"type": st.sampled_from("AABBC")},
    optional={
        "id": st.integers(0, 1) | st.integers(0, 1) | st.integers(0, 2) | st.none(),
        "price": ints | ints | st.sampled_from([None, 0.5, 2.0, float("nan")]),
        "name": st.none() | st.sampled_from(["a", "ab", "é"]),
        "ok": st.none() | st.booleans(),
    },
)


full_rows = st.fixed_dictionaries(
    {
        "type": st.sampled_from("AABBBC"),
        "id": st.integers(0, 1),
        "price": st.sampled_from([0, 1, 1, 2, 0.5]),
        "name": st.sampled_from(["a", "a", "b"]),
    }
)


def streams(most: int = 6, rows: st.SearchStrategy[dict[str, Any]] = rows) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Short streams with a non-decreasing time `at` in milliseconds (ties included)."""

    def timed(pairs: list[tuple[dict[str, Any], int]]) -> list[dict[str, Any]]:
        at, timed_rows = 0, []
        for row, step in pairs:
            at += step
            timed_rows.append({**row, "at": at})
        return timed_rows

    steps = st.sampled_from([0, 1, 1, 1, 2, 1000])
    some = st.lists(st.tuples(rows, steps), min_size=most, max_size=most)
    return (some | some | some | st.lists(st.tuples(rows, steps), max_size=most)).map(timed)
