"""Random queries with NOT at an end, and streams on which their windows are defined."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

from hypothesis import strategies as st

from cerite.core.match import Match
from cerite.pattern import (
    Concat,
    Consume,
    Event,
    Filter,
    Having,
    Item,
    Iteration,
    Named,
    On,
    Pattern,
    Project,
    QuerySpec,
    Select,
    Sequence,
    Size,
    Strategy,
    Suppress,
    Union,
    Window,
)
from cerite.pattern.absences import deciding, ends_in_absence, waiting_parts
from cerite.pattern.rewrite.absent import one_window
from cerite.pattern.variables import bound
from cerite.predicate import expression as ex
from tests.properties.agreement import Rows, judged, runnable

SIZES = (
    st.integers(2, 5).map(Size.events)
    | st.builds(Size, st.integers(0, 6), st.just("milliseconds"))
    | st.builds(Size, st.integers(0, 6), st.just("milliseconds"))
    | st.builds(Size.of, st.just("price"), st.integers(0, 3) | st.just(0.5))
)
SILENCES = st.builds(
    Suppress, st.builds(Size, st.integers(0, 6) | st.just(1.5), st.just("milliseconds")), st.booleans()
)
INNER_SIZES = (
    st.integers(1, 4).map(Size.events)
    | st.builds(Size, st.integers(0, 4), st.just("milliseconds"))
    | st.builds(Size.of, st.just("price"), st.integers(0, 2) | st.just(0.5))
)
RISING_SIZES = st.integers(1, 5).map(Size.events) | st.builds(Size, st.integers(0, 6), st.just("milliseconds"))


@cache
def compared(readable: tuple[str, ...]) -> st.SearchStrategy[ex.Expression]:
    own = st.sampled_from(("id", "price")).map(ex.Attribute)
    other: st.SearchStrategy[ex.Expression] = st.integers(0, 2).map(ex.Literal)
    if readable:
        other = other | st.builds(ex.Reference, st.sampled_from(readable), st.sampled_from(("id", "price")))
    return st.builds(ex.Comparison, st.sampled_from(["=", "=", "<=", ">=", "!="]), own, other)


@cache
@st.composite
def absent_patterns(draw: st.DrawFn, readable: tuple[str, ...]) -> Pattern:
    """What must not occur: mostly one event, perhaps one that reads what came before; sometimes several events."""
    kind = draw(st.sampled_from("BBBCA"))
    shape = draw(st.integers(0, 9))
    one: Pattern = Event(kind, draw(compared(readable)) if shape in (0, 1, 2) else None)
    if shape <= 6:
        return one
    other = Event(draw(st.sampled_from("BC")))
    if shape == 7:
        return Sequence((one, other))
    if shape == 8:
        return Filter(
            Sequence((Named(Event(kind), "u"), Named(other, "v"))), (On("v", draw(compared(("u", *readable)))),)
        )
    return Union((one, Iteration(other, 2, 2, draw(st.booleans()))))


@cache
@st.composite
def remembering(draw: st.DrawFn) -> Pattern:
    """What must not occur before a match, stateful: it compares its events with each other or others."""
    first, second = (Named(Event(draw(st.sampled_from("BBCA"))), name) for name in "uv")
    both = Sequence((first, second))
    shape = draw(st.integers(0, 7))
    if shape == 0:
        return Window(both, draw(INNER_SIZES))
    if shape == 1:
        return Select(draw(st.sampled_from((Strategy.NEXT, Strategy.LAST, Strategy.MAX))), both)
    if shape == 2:
        return Sequence((first, second), ((Event("C", draw(compared(("u",)))),),))
    if shape == 3:
        several = Named(Iteration(Event(draw(st.sampled_from("BC"))), 1, None, draw(st.booleans())), "u")
        return Having(
            several, (ex.Comparison(">", ex.Aggregate("SUM", "u", "price"), ex.Literal(draw(st.integers(0, 2)))),)
        )
    if shape == 4:
        return Window(Sequence((draw(st.sampled_from((first, both))),), before=(Event("C"),)), draw(INNER_SIZES))
    if shape == 5:
        again = Iteration(second, 1, None, draw(st.booleans()))
        return Filter(Sequence((first, again)), (On("v", draw(compared(("u", "v")))),))
    return Filter(both, (On("v", draw(compared(("u",)))),))


@cache
@st.composite
def announcing(draw: st.DrawFn) -> Pattern:
    """What must not occur before a match and reads its first event, x."""
    waiting = draw(compared(draw(st.sampled_from((("x",), ("x",), ("x", "y"))))))
    if draw(st.integers(0, 3)) == 0:
        waiting = ex.And((waiting, draw(compared(()))))
    one = Event(draw(st.sampled_from("BBCA")), waiting)
    shape = draw(st.integers(0, 6))
    if shape == 0:
        return Named(one, "u")
    if shape == 1:
        return Sequence((one, Event(draw(st.sampled_from("BC")))))
    if shape == 2:
        both = Sequence((Named(Event("B"), "u"), Named(Event(draw(st.sampled_from("BC"))), "v")))
        on = On(draw(st.sampled_from("uv")), waiting)
        return Filter(both, (on, On("v", draw(compared(("u",)))))) if draw(st.booleans()) else Filter(both, (on,))
    if shape == 3:
        return Window(Concat((Event("B"), one)), draw(INNER_SIZES))
    return one


def before_patterns(core: Pattern) -> st.SearchStrategy[Pattern]:
    return _before("x" in bound(core))


@cache
def _before(is_bound: bool) -> st.SearchStrategy[Pattern]:
    return absent_patterns(()) | remembering() | (announcing() if is_bound else remembering())


@cache
def several_absent(readable: tuple[str, ...]) -> st.SearchStrategy[tuple[Pattern, ...]]:
    return st.lists(absent_patterns(readable), min_size=1, max_size=2).map(tuple)


@cache
@st.composite
def cores(draw: st.DrawFn) -> Pattern:
    """What must occur: an event, a sequence, an iteration, alternatives, now and then with conditions across events."""
    first: Pattern = Named(Event(draw(st.sampled_from(("A", "A", "B", None)))), "x")
    shape = draw(st.integers(0, 9))
    if shape <= 2:
        return first
    second: Pattern = Named(Event(draw(st.sampled_from("AB"))), "y")
    if shape <= 4:
        return Sequence((first, second))
    if shape == 5:
        return Sequence((first, Iteration(second, 1, None, draw(st.booleans()))))
    if shape == 6:
        return Filter(Sequence((first, second)), (On("y", draw(compared(("x",)))),))
    if shape == 7:
        return Union((first, Sequence((first, second))))
    if shape == 8:
        return Select(draw(st.sampled_from((Strategy.LAST, Strategy.NEXT))), Sequence((first, second)))
    return Sequence((first, second), ((Event("C"),),))


@cache
@st.composite
def absences(draw: st.DrawFn) -> Pattern:
    core = draw(cores())
    inner = core if isinstance(core, Sequence) and draw(st.booleans()) else Sequence((core,))
    known = tuple(sorted({"x", "y"} & bound(core)))
    where = draw(st.integers(0, 3))
    after = draw(several_absent(known)) if where != 1 else ()
    before = (draw(before_patterns(core)),) if where in (1, 2) else ()
    made: Pattern = replace(inner, before=before, after=after)
    outer = draw(st.integers(0, 11))
    if outer == 0:
        made = Filter(made, (On("x", draw(compared(()))),))
    if outer == 1:
        made = Named(made, "z")
    if outer == 2:
        made = Union((made, Sequence((Event("C"),), after=after, before=before)))
    if outer == 3:
        made = Project(made, ("x",))
    if outer == 4:
        made = Window(made, draw(RISING_SIZES))
    if outer == 5:
        made = Named(Window(made, draw(RISING_SIZES)), "z")
    if outer == 6:
        other = Sequence((Iteration(Event("B"), 1, None),), after=after, before=before)
        made = Having(Named(Union((made, other)), "z"), (_at_least("z", draw(st.integers(1, 2))),))
    if outer == 7:
        made = Having(Project(made, ("x",)), (_at_least("x", 1),))
    return made


def _at_least(name: str, number: int) -> ex.Expression:
    return ex.Comparison(">=", ex.Aggregate("COUNT", name, None), ex.Literal(number))


@cache
@st.composite
def parts(draw: st.DrawFn) -> Pattern:
    """Something that is absent before a part of the pattern, in the part's own window."""
    core = draw(cores())
    before = tuple(draw(st.lists(before_patterns(core), min_size=1, max_size=2)))
    times = st.sampled_from((1, 2, 1001)).map(lambda amount: Size(amount, "milliseconds"))
    others = st.integers(2, 4).map(Size.events) | st.sampled_from((0, 0.5, 1, 2)).map(partial(Size.of, "price"))
    part: Pattern = Window(Sequence((core,), before=before), draw(times | others))
    other = Named(Event(draw(st.sampled_from("ABC"))), "w")
    shape = draw(st.integers(0, 7))
    if shape <= 1:
        return Sequence((part, other))
    if shape == 6:
        return Sequence((Named(Event("A"), "x"), other), ((part,),))
    if shape == 7:
        return Sequence((other, Select(draw(st.sampled_from((Strategy.LAST, Strategy.NEXT, Strategy.MAX))), part)))
    if shape <= 3:
        return Sequence((other, part))
    if shape == 4:
        return Sequence((other, Iteration(part, 1, 2)))
    return Sequence((other, Union((part, Event("C")))))


@cache
@st.composite
def ending_parts(draw: st.DrawFn) -> tuple[Pattern, Size | None]:
    """Something that is absent after a part of the pattern, in the part's own window, and a window around all of it."""
    kind = draw(st.sampled_from(("time", "time", "time", "events", "events", "price")))

    def window(least: int) -> Size:
        amount = draw(st.integers(least, 6))
        if kind == "price":
            return Size.of("price", amount if draw(st.booleans()) else amount / 4)
        return Size(amount, "milliseconds") if kind == "time" else Size.events(max(amount, 1))

    size = window(0)

    def part(readable: tuple[str, ...] = ()) -> Pattern:
        core = draw(cores())
        known = tuple(sorted({"x", "y"} & bound(core))) + readable
        after = draw(several_absent(known))
        before = (draw(before_patterns(core)),) if draw(st.integers(0, 7)) == 0 else ()
        inner: Pattern = Sequence((core,), before=before, after=after)
        around = draw(st.integers(0, 9))
        if around == 0:
            inner = Named(inner, "z")
        if around == 1:
            inner = Project(inner, ("x",))
        if around == 2:
            inner = Union((inner, Sequence((Event("C"),), after=after)))
        return Window(inner, size)

    other = Named(Event(draw(st.sampled_from("ABC"))), "w")
    several: Pattern = Iteration(other, 1, None, draw(st.booleans()))
    shape = draw(st.integers(0, 11))
    made: Pattern = Sequence((part(), other))
    if shape == 1:
        made = Sequence((part(), several))
    if shape == 2:
        made = Sequence((other, part(("w",))))
    if shape == 3:
        made = Sequence((other, part(("w",)), Event("C")))
    if shape == 4:
        made = Sequence((part(), other), ((Event("C"),),))
    if shape == 5:
        made = Iteration(Window(Sequence((Event("A"),), after=(Event("B"),)), size), 1, 2)
    if shape == 6:
        other_size = window(0) if kind != "price" and draw(st.booleans()) else size
        first = Window(Sequence((Named(Event("A"), "v"),), after=(draw(absent_patterns(("v",))),)), other_size)
        made = Sequence((first, part()))
    if shape == 7:
        made = Union((Sequence((part(), other)), Sequence((Event("A"), Event("B")))))
    if shape == 8:
        made = Having(Sequence((part(), several)), (_at_least("w", 2),))
    if shape == 9:
        made = Concat((part(), other))
    if shape == 10:
        made = Sequence((several, part()))
    if shape == 11:  # decided by the query's window, too
        made = Sequence((part(), other), after=(draw(absent_patterns(("w",))),))
        return made, window(2) if kind != "price" else size
    around = st.just(window(2)) | st.just(window(4))
    return made, draw(around if kind == "price" else st.none() | around)


def windowed(ending: tuple[Pattern, Size | None]) -> QuerySpec:
    return QuerySpec(ending[0], within=ending[1])


PLAIN_QUERIES = st.builds(QuerySpec, absences() | absences() | parts(), within=SIZES) | ending_parts().map(windowed)


@st.composite
def queries(draw: st.DrawFn) -> QuerySpec:
    query = draw(PLAIN_QUERIES)
    names = sorted(bound(query.where))
    waits = bool(waiting_parts(query.where)) and not ends_in_window(query)
    late = ends_in_absence(query.where) or waits
    timed = all(size.is_time for size in deciding(query.where, query.within))
    strategy = None if late else draw(st.none() | st.sampled_from(list(Strategy)))
    return replace(
        query,
        items=draw(st.none() | st.sampled_from(names).map(lambda name: (Item(name),))),
        strategy=strategy,
        partition=draw(st.sampled_from([(), ("id",), ("name",)])),
        consume=draw(st.sampled_from(list(Consume))),
        limit=draw(st.none() | st.none() | st.integers(1, 2)),
        suppress=draw(st.none() | st.none() | SILENCES) if timed else None,
    )


def ends_in_window(query: QuerySpec) -> bool:
    """Whether matches are decided by the end of one window around all of the pattern, and by nothing else."""
    return not waiting_parts(one_window(query.where, query.within)[0])


def judge(query: QuerySpec, rows: Rows, semantics: Any) -> list[Match] | None:
    """What the judge finds on rows on which the window is defined; None where the engine does not run the query."""
    return judged(query, fitting(query, rows), semantics) if runnable(query) else None


def fitting(query: QuerySpec, rows: Rows) -> Rows:
    """Rows on which the query's window is defined: the attribute that measures it rises in every partition."""
    if query.within is None or query.within.attribute is None:
        return rows
    known = [row["price"] for row in rows if row.get("price") is not None and row["price"] == row["price"]]
    rising = iter(sorted(known))
    usable = (row.get("price") is not None and row["price"] == row["price"] for row in rows)
    return [{**row, "price": next(rising)} if some else row for row, some in zip(rows, usable, strict=True)]
