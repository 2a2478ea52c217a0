"""The set of valuations of every construct, straight from its definition, by brute force.

`Evaluator.all(pattern, env)` is CORE's ⌈φ⌋(S), with the registers `env` that hold what the match bound before (ICDT's
ν, the SRT report's v). Invariant: the result depends on the pattern, the stream and `env` alone, so it is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from cerite.core.errors import PatternError
from cerite.pattern import nodes
from cerite.pattern.absences import absences
from cerite.pattern.references import read_later
from cerite.pattern.rewrite.orders import expand_permute
from cerite.pattern.rewrite.skips import expand_skips
from cerite.predicate.evaluate import Event as Attributes
from cerite.predicate.evaluate import Gather, Lookup, holds
from cerite.predicate.expression import Aggregate, Expression, Reference, variables
from cerite.reference.semantics.short_stream import Stream

# Valuations: what one way of matching a pattern did (CORE, section 2.2; SRT report, definition 17).
#
# A valuation has consumed the events of ranks `lo`..`hi`, marked those from `start` to `end` (the first and last
# marked, before any projection), bound variables to positions and perhaps stored events that it did not mark. For CEL
# all consumed ends are marked, so the two intervals agree; SREMO may pass over events at either end. `EMPTY` has
# consumed nothing and is neutral in every sequence.

Pairs = frozenset[tuple[str, int]]  # (variable, rank)
_NO_PAIRS: Pairs = frozenset()


@dataclass(frozen=True, slots=True)
class Valuation:
    """Ranks are positions in the (sub)stream the pattern is evaluated on."""

    lo: int
    hi: int
    start: int | None = None
    end: int | None = None
    bindings: Pairs = _NO_PAIRS
    stores: Pairs = _NO_PAIRS
    waits: frozenset[tuple[nodes.Size, int]] = (
        frozenset()
    )  # windows with their starts that must be over: absences at ends

    @property
    def is_empty(self) -> bool:
        """Whether nothing was consumed."""
        return self.hi < self.lo

    @property
    def positions(self) -> frozenset[int]:
        """The ranks that some variable holds."""
        return frozenset(rank for _, rank in self.bindings)

    @property
    def registers(self) -> Pairs:
        """What a later condition can read: bound or stored."""
        return self.bindings | self.stores

    def then(self, other: Valuation) -> Valuation:
        """This one followed by another."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        return self._merged(other, self.lo, other.hi)

    def beside(self, other: Valuation) -> Valuation:
        """Both on the same events (intersection)."""
        return self._merged(other, self.lo, self.hi)

    def _merged(self, other: Valuation, lo: int, hi: int) -> Valuation:
        starts = [each for each in (self.start, other.start) if each is not None]
        ends = [each for each in (self.end, other.end) if each is not None]
        return Valuation(
            lo, hi, min(starts, default=None), max(ends, default=None),
            self.bindings | other.bindings, self.stores | other.stores, self.waits | other.waits,
        )  # fmt: skip

    def named(self, variable: str) -> Valuation:
        """Every position also bound to the variable."""
        return replace(self, bindings=self.bindings | {(variable, rank) for rank in self.positions})

    def projected(self, variables: frozenset[str]) -> Valuation:
        """Other variables emptied and forgotten; the intervals stay."""
        pairs = frozenset(pair for pair in self.bindings if pair[0] in variables)
        return replace(self, bindings=pairs, stores=_NO_PAIRS)


EMPTY = Valuation(0, -1)


# Selection strategies by comparison of position sets (ICDT 2019, section 4).
#
# The formula printed there for MAX is garbled; the prose and the examples mean: no strictly larger match has the same
# end. All matches with a winning set are kept.

T = TypeVar("T")
Positions = frozenset[int]


def selected(
    strategy: nodes.Strategy, matches: Iterable[T], end: Callable[[T], Hashable], positions: Callable[[T], Positions]
) -> list[T]:
    """The matches that win among those with the same end.

    >>> sets = [frozenset({1, 8}), frozenset({5, 8})]
    >>> [sorted(s) for s in selected(nodes.Strategy.LAST, sets, max, lambda s: s)]
    [[5, 8]]
    """
    groups: dict[Hashable, list[T]] = {}
    for match in matches:
        groups.setdefault(end(match), []).append(match)
    chosen: list[T] = []
    for group in groups.values():
        sets = {positions(match) for match in group}
        winners = _WINNERS[strategy](sets)
        chosen += [match for match in group if positions(match) in winners]
    return chosen


def next_before(one: Positions, two: Positions) -> bool:
    """one ≤next two: equal, or the smallest position they differ in is in two."""
    return one == two or min(one ^ two) in two


def last_before(one: Positions, two: Positions) -> bool:
    """one ≤last two: equal, or the largest position they differ in is in two."""
    return one == two or max(one ^ two) in two


def is_interval(one: Positions) -> bool:
    """Whether the positions are consecutive."""
    return not one or max(one) - min(one) + 1 == len(one)


_WINNERS: dict[nodes.Strategy, Callable[[set[Positions]], set[Positions]]] = {
    nodes.Strategy.STRICT: lambda sets: {one for one in sets if is_interval(one)},
    nodes.Strategy.NEXT: lambda sets: {one for one in sets if all(next_before(two, one) for two in sets)},
    nodes.Strategy.LAST: lambda sets: {one for one in sets if all(last_before(two, one) for two in sets)},
    nodes.Strategy.MAX: lambda sets: {one for one in sets if not any(one < two for two in sets)},
}


Valuations = frozenset[Valuation]
Gap = tuple[nodes.Pattern, ...]
Stretch = tuple[int, int]  # the first rank and the last


class Evaluator:
    """Evaluates (resolved) patterns on one stream.

    `past` has the events before it: they are part of no match, but an absence before a match looks at them, too.
    """

    def __init__(self, stream: Stream, past: Stream | None = None) -> None:
        self.stream = stream
        self._past = () if past is None else past.events
        self._whole = stream if not self._past else Stream((*self._past, *stream.events))
        self._all_along = self if not self._past else Evaluator(self._whole)
        self._sizes: dict[int, nodes.Size] = {}  # the windows of absences, by the sequence
        self._known: dict[tuple[int, Pairs], Valuations] = {}
        self._sorted: dict[tuple[int, Pairs], tuple[bool, dict[int, list[Valuation]]]] = {}
        self._occurring: dict[tuple[int, Pairs], frozenset[Stretch]] = {}
        self._reads: dict[int, frozenset[str]] = {}
        self._alive: list[nodes.Pattern] = []  # keeps ids valid

    def within(self, pattern: nodes.Pattern, size: nodes.Size | None) -> Valuations:
        """Every valuation of a pattern directly inside this window, which bounds the pattern's absences."""
        if size is not None:
            self._sizes |= {id(each): size for each in absences(pattern)}
        return self.all(pattern)

    def all(self, pattern: nodes.Pattern, env: Pairs = frozenset()) -> Valuations:
        """Every valuation of the pattern, anywhere in the stream."""
        key = (id(pattern), self._seen_by(pattern, env))
        if key not in self._known:
            self._known[key] = frozenset(self._evaluate(pattern, key[1]))
        return self._known[key]

    def _seen_by(self, pattern: nodes.Pattern, env: Pairs) -> Pairs:
        if id(pattern) not in self._reads:
            self._reads[id(pattern)] = _read(pattern)
            self._alive.append(pattern)
        reads = self._reads[id(pattern)]
        return frozenset(pair for pair in env if pair[0] in reads)

    def _evaluate(self, pattern: nodes.Pattern, env: Pairs) -> Iterable[Valuation]:
        match pattern:
            case nodes.Empty():
                return (EMPTY,)
            case nodes.Nothing():
                return ()
            case nodes.Event():
                return self._event(pattern, env)
            case nodes.Named(operand=operand, variable=variable):
                return (each.named(variable) for each in self.all(operand, env))
            case nodes.Project(operand=operand, variables=names):
                return (each.projected(frozenset(names)) for each in self.all(operand, env))
            case nodes.Filter(operand=operand, conditions=conditions):
                return (each for each in self.all(operand, env) if self._satisfies(each, conditions, env))
            case nodes.Having(operand=operand, conditions=conditions):
                return (each for each in self.all(operand, env) if self._has(each, conditions, env))
            case nodes.Union(parts=parts):
                return frozenset().union(*(self.all(part, env) for part in parts))
            case nodes.Intersection(parts=parts):
                return self._intersection(parts, env)
            case nodes.Sequence(parts=parts, absent=absent):
                chained = self._chain(parts, absent, env, adjacent=False)
                return self._absences(pattern, chained, env) if pattern.before or pattern.after else chained
            case nodes.Concat(parts=parts):
                return self._chain(parts, ((),) * (len(parts) - 1), env, adjacent=True)
            case nodes.Iteration():
                return self._iteration(pattern, env)
            case nodes.Window(operand=operand, size=size):
                self._sizes |= {id(each): size for each in absences(operand)}
                return (
                    each
                    for each in self.all(operand, env)
                    if each.start is None or each.end is None or self.stream.fits(size, each.start, each.end)
                )
            case nodes.Select(strategy=strategy, operand=operand):
                valuations = self._beginning_anywhere(operand, env)
                return selected(strategy, valuations, lambda each: each.hi, lambda each: each.positions)
            case nodes.Complement(operand=operand):
                return self._complement(operand, env)
            case nodes.Permute():
                return self.all(self._keep(expand_permute(pattern)), env)
            case nodes.SkipAny() | nodes.SkipNext():
                return self.all(self._keep(expand_skips(pattern)), env)
        raise TypeError(f"not a pattern: {pattern!r}")

    def _keep(self, pattern: nodes.Pattern) -> nodes.Pattern:
        self._alive.append(pattern)
        return pattern

    def _event(self, event: nodes.Event, env: Pairs) -> Iterator[Valuation]:
        for rank, each in enumerate(self.stream.events):
            fits = event.type is None or each.type == event.type
            if fits and self._holds(event.condition, rank, env):
                marked = rank if event.output else None
                bindings = frozenset((label, rank) for label in event.labels)
                stores = frozenset((name, rank) for name in event.writes - event.labels)
                yield Valuation(rank, rank, marked, marked, bindings, stores)

    def _satisfies(self, valuation: Valuation, conditions: tuple[nodes.On, ...], env: Pairs) -> bool:
        """Whether every event of each filtered variable satisfies the condition (for all over x's events)."""
        registers = env | valuation.registers
        return all(
            self._holds(on.condition, rank, registers)
            for on in conditions
            for name, rank in valuation.bindings
            if name == on.variable
        )

    def _has(self, valuation: Valuation, conditions: tuple[Expression, ...], env: Pairs) -> bool:
        """Whether the complete pattern satisfies the conditions: aggregates are about its own events only."""
        lookup, gather = self._read_at_end(valuation, env)
        return all(holds(each, {}, lookup, gather) for each in conditions)

    def _read_at_end(self, valuation: Valuation, env: Pairs) -> tuple[Lookup, Gather]:
        """What a condition on a complete pattern reads of other events."""
        registers = env | valuation.registers

        def lookup(reference: Reference) -> Attributes | None:
            return self._attributes(max(_bound_to(registers, reference.variable), default=None))

        def gather(node: Aggregate) -> list[Attributes]:
            return self._gathered(node, valuation.bindings if node.variable is None else valuation.registers)

        return lookup, gather

    def _holds(self, condition: Expression | None, rank: int, registers: Pairs) -> bool:
        return holds(condition, self.stream.events[rank].attributes, *self._read_at(rank, registers))

    def _read_at(self, rank: int, registers: Pairs) -> tuple[Lookup, Gather]:
        """What a condition on the event of this rank reads of other events."""

        def lookup(reference: Reference) -> Attributes | None:
            stored = _bound_to(registers, reference.variable)
            if reference.later:
                return self._attributes(min((each for each in stored if each > rank), default=None))
            return self._attributes(max((each for each in stored if each < rank), default=None))

        def gather(node: Aggregate) -> list[Attributes]:
            return self._gathered(node, frozenset(pair for pair in registers if pair[1] < rank))

        return lookup, gather

    def _gathered(self, node: Aggregate, registers: Pairs) -> list[Attributes]:
        """The events that a variable holds, in stream order."""
        return [self.stream.events[rank].attributes for rank in sorted(_bound_to(registers, node.variable))]

    def _attributes(self, rank: int | None) -> Attributes | None:
        return None if rank is None else self.stream.events[rank].attributes

    def _chain(
        self, parts: tuple[nodes.Pattern, ...], absent: tuple[Gap, ...], env: Pairs, *, adjacent: bool
    ) -> Iterator[Valuation]:
        """One part after another. `gap` collects what is negated since the last part that consumed something."""
        current: set[tuple[Valuation, Gap]] = {(EMPTY, ())}
        for index, part in enumerate(parts):
            following = absent[index] if index < len(absent) else ()
            reached: set[tuple[Valuation, Gap]] = set()
            for before, gap in current:
                for after in self._continuing(before, part, env, adjacent=adjacent):
                    if after.is_empty:
                        reached.add((before, gap + following))
                    elif not self._occurs(gap, before, after, env):
                        reached.add((before.then(after), following))
            current = reached
        return (valuation for valuation, _ in current)

    def _continuing(self, before: Valuation, part: nodes.Pattern, env: Pairs, *, adjacent: bool) -> Iterator[Valuation]:
        """The part's valuations that may come next: empty ones, and those that start late enough."""
        known = self._seen_by(part, env | before.registers)
        key = (id(part), known)
        if key not in self._sorted:
            by_start: dict[int, list[Valuation]] = {}
            for each in self.all(part, known):
                if not each.is_empty:
                    by_start.setdefault(each.lo, []).append(each)
            self._sorted[key] = (EMPTY in self.all(part, known), by_start)
        empty, by_start = self._sorted[key]
        if empty:
            yield EMPTY
        first = 0 if before.is_empty else before.hi + 1
        last = first + 1 if adjacent and not before.is_empty else len(self.stream.events)
        for start in range(first, last):
            yield from by_start.get(start, ())

    def _occurs(self, negated: Gap, before: Valuation, after: Valuation, env: Pairs) -> bool:
        """Whether one of the negated patterns occurs strictly between the two."""
        return any(any(self._between(pattern, before, after, env)) for pattern in negated)

    def _between(self, pattern: nodes.Pattern, before: Valuation, after: Valuation, env: Pairs) -> Iterator[Stretch]:
        """Where the pattern occurs strictly between the two."""
        stretches = self._stretches(pattern, env | before.registers)
        return ((lo, hi) for lo, hi in stretches if before.hi < lo and hi < after.lo)

    def _absences(self, node: nodes.Sequence, valuations: Iterable[Valuation], env: Pairs) -> Iterator[Valuation]:
        """The valuations around which, inside the window, nothing occurs that is negated at an end."""
        if id(node) not in self._sizes:
            raise PatternError(f"`{node}` needs a window: for how long is it absent?", span=node.span)
        size = self._sizes[id(node)]
        for each in valuations:
            if each.start is None or each.end is None:
                continue  # it marks nothing, so it has neither start nor end
            earlier = any(any(self._earlier(pattern, each, size, env)) for pattern in node.before)
            if not earlier and not any(any(self._later(pattern, each, size, env)) for pattern in node.after):
                yield replace(each, waits=each.waits | {(size, each.start)}) if node.after else each

    def _earlier(self, pattern: nodes.Pattern, each: Valuation, size: nodes.Size, env: Pairs) -> Iterator[Stretch]:
        """Where the pattern occurs wholly before the start, inside the window that ends at the end.

        It may read the events of the match itself, which come after it. Ranks count the events before the stream, too.
        """
        shift = len(self._past)
        awaited = read_later(pattern)
        later = frozenset(pair for pair in each.registers if pair[0] in awaited)
        outer = frozenset((name, rank + shift) for name, rank in env | later)
        start, end = (each.start or 0) + shift, (each.end or 0) + shift
        stretches = self._all_along._stretches(pattern, outer)
        return ((lo, hi) for lo, hi in stretches if hi < start and self._whole.fits(size, lo, end))

    def _later(self, pattern: nodes.Pattern, each: Valuation, size: nodes.Size, env: Pairs) -> Iterator[Stretch]:
        """Where the pattern occurs wholly after the end, inside the window that begins at the start."""
        start, end, registers = each.start or 0, each.end or 0, env | each.registers
        stretches = self._stretches(pattern, registers)
        return ((lo, hi) for lo, hi in stretches if lo > end and self.stream.fits(size, start, hi))

    def _stretches(self, pattern: nodes.Pattern, env: Pairs) -> frozenset[Stretch]:
        """Where the pattern occurs, whatever it marks there."""
        key = (id(pattern), self._seen_by(pattern, env))
        if key not in self._occurring:
            valuations = self.all(pattern, env)
            self._occurring[key] = frozenset((each.lo, each.hi) for each in valuations if not each.is_empty)
        return self._occurring[key]

    def _iteration(self, node: nodes.Iteration, env: Pairs) -> set[Valuation]:
        """φ or φ;φ or …: an empty repetition counts as one but adds nothing."""
        may_be_empty = EMPTY in self.all(node.operand, env)
        least = 0 if may_be_empty else node.least
        valuations: set[Valuation] = {EMPTY} if least == 0 else set()
        current: set[Valuation] = {EMPTY}
        times = 0
        seen: set[Valuation] = set()
        while current and times != node.most:
            times += 1
            current = {
                before.then(after)
                for before in current
                for after in self._continuing(before, node.operand, env, adjacent=node.contiguous)
                if not after.is_empty
            }
            if node.most is None and times >= least:
                current -= seen  # an unbounded iteration goes on from each valuation once
                seen |= current
            if times >= least:
                valuations |= current
        return valuations

    def _beginning_anywhere(self, pattern: nodes.Pattern, env: Pairs) -> set[Valuation]:
        """What a strategy compares: each valuation reads what was bound before it began, and its own names first."""
        valuations = {each for each in self.all(pattern, env) if each.is_empty}
        for lo in range(len(self.stream.events)):
            before = frozenset(pair for pair in env if pair[1] < lo)
            valuations |= {each for each in self.all(pattern, before) if each.lo == lo and not each.is_empty}
        return valuations

    def _intersection(self, parts: tuple[nodes.Pattern, ...], env: Pairs) -> list[Valuation]:
        def key(each: Valuation) -> object:
            return (each.lo, each.hi, each.start, each.end, each.positions)

        current = list(self.all(parts[0], env))
        for part in parts[1:]:
            others: dict[object, list[Valuation]] = {}
            for each in self.all(part, env):
                others.setdefault(key(each), []).append(each)
            current = list({one.beside(two) for one in current for two in others.get(key(one), ())})
        return current

    def _complement(self, operand: nodes.Pattern, env: Pairs) -> Iterator[Valuation]:
        taken = {(each.lo, each.hi) for each in self.all(operand, env)}
        if EMPTY not in self.all(operand, env):
            yield EMPTY
        count = len(self.stream.events)
        for lo in range(count):
            yield from (Valuation(lo, hi) for hi in range(lo, count) if (lo, hi) not in taken)


def _bound_to(registers: Pairs, variable: str | None) -> set[int]:
    """The events that a variable holds; None: those of all variables."""
    return {rank for name, rank in registers if variable is None or name == variable}


def _read(pattern: nodes.Pattern) -> frozenset[str]:
    """Every variable some condition inside the pattern reads."""
    return frozenset().union(*map(variables, nodes.conditions_of(pattern)))
