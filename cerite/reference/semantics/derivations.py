"""The derivations of a word: how given events could be a match of a pattern, and which conditions hold in each case.

The judge keeps the valuations of which every condition is true. Here the events of the match are given (a *word*, in
stream order), and a derivation keeps every condition that it meets with its verdict: a pattern reads a stretch of the
word as a grammar reads a text. Types and order must fit; conditions, contiguity, negations, windows and strategies are
checks that may fail. Events that no variable of the match shows (passed over, or projected away) are not in the word:
they are looked for in the stream, and must satisfy their conditions.

Invariant: the derivations of which every check holds are the judge's valuations of these positions. Take away from the
pattern what the failing checks of one are about, and the judge has its valuation, too (tests/properties/test_why.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from cerite.core.errors import BudgetError
from cerite.pattern import nodes
from cerite.pattern.absences import absences
from cerite.pattern.durations import passed_text
from cerite.pattern.printing import event_text, negated_text
from cerite.pattern.variables import nullable
from cerite.predicate.evaluate import holds
from cerite.predicate.expression import Expression, references
from cerite.predicate.words import conjuncts, explained, shown
from cerite.reference.semantics.patterns import EMPTY, Evaluator, Pairs, Valuation, is_interval
from cerite.reference.semantics.short_stream import Stream

MOST_STEPS = 100_000  # how many events are tried before the pattern is said to be too ambiguous
Kind = Literal["condition", "contiguity", "negation", "window", "strategy", "consumption"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold in a match. `rank` is the event at which it is decided, `about` the one it is about."""

    kind: Kind
    holds: bool
    text: str
    rank: int
    about: int | None = None
    owner: nodes.Pattern | None = field(default=None, compare=False, repr=False)
    part: Expression | nodes.Pattern | None = field(
        default=None, compare=False, repr=False
    )  # of the owner, what is checked


Checks = tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Derivation:
    """A possible valuation, and the checks on it in the order in which they are decided."""

    valuation: Valuation
    checks: Checks

    @property
    def failing(self) -> Checks:
        """The checks that fail."""
        return tuple(check for check in self.checks if not check.holds)


class _Step(NamedTuple):
    """A part of the pattern has read the word up to `at`."""

    at: int
    valuation: Valuation
    checks: Checks


@dataclass(slots=True)
class Reached:
    """How far the word was read before its types stopped fitting, and what the pattern expects there; None is its end.

    `types` are those that the pattern expects at every place, even where the word has one of them; None is any type.
    """

    at: int = -1
    expected: dict[str | None, None] = field(default_factory=dict)
    types: dict[int, set[str | None]] = field(default_factory=dict)

    def note(self, at: int, expected: str | None) -> None:
        """Note that the pattern expects this at a place of the word."""
        if at > self.at:
            self.at, self.expected = at, {}
        if at == self.at:
            self.expected[expected] = None


class Derivations(Evaluator):
    """Reads one word of a (sub)stream: the ranks of the events that should be a match."""

    def __init__(self, stream: Stream, word: Iterable[int], past: Stream | None = None) -> None:
        super().__init__(stream, past)
        self.word = tuple(word)
        self.reached = Reached()
        self._left = MOST_STEPS

    def of(
        self, pattern: nodes.Pattern, within: nodes.Size | None, shown: Iterable[str] | None = None
    ) -> Iterator[Derivation]:
        """How a (resolved) pattern derives exactly these events.

        With `shown`, the word has only the events of these variables.
        """
        if within is not None:
            self._sizes |= {id(each): within for each in absences(pattern)}
        above = () if shown is None else (nodes.Project(pattern, tuple(shown)),)
        for at, valuation, checks in self._read(pattern, 0, 0, frozenset(), above):
            if at < len(self.word):
                self.reached.note(at, None)
            elif not valuation.is_empty and valuation.end == valuation.hi:
                if within is not None:
                    checks += (self._window(within, valuation, None),)
                yield Derivation(valuation, tuple(sorted(checks, key=lambda check: check.rank)))

    def all(self, pattern: nodes.Pattern, env: Pairs = frozenset()) -> frozenset[Valuation]:
        """The judge's valuations, where they are needed; they count towards `MOST_STEPS`."""
        valuations = super().all(pattern, env)
        self._spend(1 + len(valuations))
        return valuations

    def _spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise BudgetError(
                "there are too many ways to read these events as a match to go through",
                hint="explain fewer events at a time, on data cut down to what is near them",
            )

    # ------------------------------------------------------------ parts of the pattern
    def _read(
        self, node: nodes.Pattern, at: int, first: int, env: Pairs, above: tuple[nodes.Pattern, ...]
    ) -> Iterator[_Step]:
        """Every way to read the word from `at` on, with events from the rank `first` on.

        `above` are the nodes around this one, outermost first, that name, hide or filter its events.
        """
        match node:
            case nodes.Empty():
                yield _Step(at, EMPTY, ())
            case nodes.Nothing():
                return
            case nodes.Event():
                yield from self._read_event(node, at, first, env, above)
            case nodes.Named(operand=operand, variable=variable):
                for step in self._read(operand, at, first, env, (*above, node)):
                    yield step._replace(valuation=step.valuation.named(variable))
            case nodes.Project(operand=operand, variables=names):
                for step in self._read(operand, at, first, env, (*above, node)):
                    yield step._replace(valuation=step.valuation.projected(frozenset(names)))
            case nodes.Filter(operand=operand):
                for step in self._read(operand, at, first, env, (*above, node)):
                    yield step._replace(checks=step.checks + tuple(self._filtered(node, step.valuation, env)))
            case nodes.Having(operand=operand):
                for step in self._read(operand, at, first, env, above):
                    yield step._replace(checks=step.checks + tuple(self._whole_checks(node, step.valuation, env)))
            case nodes.Union(parts=parts):
                for part in parts:
                    yield from self._read(part, at, first, env, above)
            case nodes.Intersection(parts=parts):
                yield from self._read_both(parts, at, first, env, above)
            case nodes.Sequence() | nodes.Concat():
                yield from self._read_parts(node, at, first, env, above)
            case nodes.Iteration():
                yield from self._read_repeated(node, at, first, env, above)
            case nodes.Window(operand=operand, size=size):
                self._sizes |= {id(each): size for each in absences(operand)}
                for step in self._read(operand, at, first, env, above):
                    within = () if step.valuation.start is None else (self._window(size, step.valuation, node),)
                    yield step._replace(checks=step.checks + within)
            case nodes.Select(operand=operand):
                for step in self._read(operand, at, first, env, above):
                    yield step._replace(checks=step.checks + self._chosen(node, step, env))
            case nodes.Complement():
                yield from self._read_unlike(node, at, first, env)
            case _:
                raise TypeError(f"not a pattern that derives words: {node!r}")

    def _read_event(
        self, node: nodes.Event, at: int, first: int, env: Pairs, above: tuple[nodes.Pattern, ...]
    ) -> Iterator[_Step]:
        seen, conditions = _labels(node, above)
        if not seen:  # it is not in the word
            for rank in range(first, self._stop(at)):
                self._spend()
                if self._fits(node, rank) and self._holds(node.condition, rank, env):
                    attributes = self.stream.events[rank].attributes
                    if all(holds(each, attributes) for each in conditions):
                        yield _Step(at, _bound(node, rank), tuple(self._own(node, rank, env)))
            return
        self._spend()
        self.reached.types.setdefault(at, set()).add(node.type)
        if at == len(self.word) or not self._fits(node, self.word[at]):
            self.reached.note(at, event_text(nodes.Event(node.type)))
        elif self.word[at] >= first:
            rank = self.word[at]
            yield _Step(at + 1, _bound(node, rank), tuple(self._own(node, rank, env)))

    def _stop(self, at: int) -> int:
        """Events outside the word come before its next one."""
        return self.word[at] if at < len(self.word) else len(self.stream.events)

    def _fits(self, node: nodes.Event, rank: int) -> bool:
        return node.type is None or self.stream.events[rank].type == node.type

    def _read_parts(
        self, node: nodes.Sequence | nodes.Concat, at: int, first: int, env: Pairs, above: tuple[nodes.Pattern, ...]
    ) -> Iterator[_Step]:
        """One part after another, as the judge's chains; then what is absent at the ends."""
        gaps = node.absent if isinstance(node, nodes.Sequence) else ()

        def rest(index: int, step: _Step, gap: tuple[nodes.Pattern, ...]) -> Iterator[_Step]:
            if index == len(node.parts):
                yield step
                return
            following = gaps[index] if index < len(gaps) else ()
            before = step.valuation
            begin = first if before.is_empty else before.hi + 1
            for more in self._read(node.parts[index], step.at, begin, env | before.registers, above):
                after = more.valuation
                if after.is_empty:
                    joined = step._replace(at=more.at, checks=step.checks + more.checks)
                    yield from rest(index + 1, joined, gap + following)
                    continue
                between = tuple(self._missing(node, each, before, after, env) for each in gap)
                if isinstance(node, nodes.Concat) and not before.is_empty:
                    if after.lo > begin and after.lo not in self.word:
                        continue  # an event outside the word is looked for only where it must be
                    between += (self._near(node, before, after),)
                joined = _Step(more.at, before.then(after), step.checks + more.checks + between)
                yield from rest(index + 1, joined, following)

        for step in rest(0, _Step(at, EMPTY, ()), ()):
            if isinstance(node, nodes.Sequence) and (node.before or node.after):
                if step.valuation.start is not None:
                    yield self._absent(node, step, env)
            else:
                yield step

    def _read_repeated(
        self, node: nodes.Iteration, at: int, first: int, env: Pairs, above: tuple[nodes.Pattern, ...]
    ) -> Iterator[_Step]:
        """φ or φ;φ or …; an empty repetition counts as one but adds nothing, as the judge has it."""
        least = 0 if self._may_be_empty(node.operand, at, first, env, above) else node.least
        seen: set[tuple[int, _Step]] = set()
        stack = [(0, _Step(at, EMPTY, ()))]
        while stack:
            times, before = stack.pop()
            if times >= least:
                yield before
            if times == node.most:
                continue
            begin = first if before.valuation.is_empty else before.valuation.hi + 1
            registers = env | before.valuation.registers
            for more in self._read(node.operand, before.at, begin, registers, above):
                after = more.valuation
                if after.is_empty:
                    continue
                checks = before.checks + more.checks
                if node.contiguous and not before.valuation.is_empty:
                    if after.lo > begin and after.lo not in self.word:
                        continue
                    checks += (self._near(node, before.valuation, after),)
                step = _Step(more.at, before.valuation.then(after), checks)
                counted = times + 1 if node.most is not None else min(times + 1, least)
                if (counted, step) not in seen:
                    seen.add((counted, step))
                    stack.append((times + 1, step))

    def _may_be_empty(
        self, node: nodes.Pattern, at: int, first: int, env: Pairs, above: tuple[nodes.Pattern, ...]
    ) -> bool:
        if not nullable(node):
            return False
        steps = self._read(node, at, first, env, above)
        return any(step.valuation.is_empty and all(check.holds for check in step.checks) for step in steps)

    def _read_both(
        self, parts: tuple[nodes.Pattern, ...], at: int, first: int, env: Pairs, above: tuple[nodes.Pattern, ...]
    ) -> Iterator[_Step]:
        """All parts on the same events."""

        def key(step: _Step) -> object:
            each = step.valuation
            return (step.at, each.lo, each.hi, each.start, each.end, each.positions)

        current = list(self._read(parts[0], at, first, env, above))
        for part in parts[1:]:
            others: dict[object, list[_Step]] = {}
            for step in self._read(part, at, first, env, above):
                others.setdefault(key(step), []).append(step)
            current = [
                _Step(one.at, one.valuation.beside(two.valuation), one.checks + two.checks)
                for one in current
                for two in others.get(key(one), ())
            ]
        yield from current

    def _read_unlike(self, node: nodes.Complement, at: int, first: int, env: Pairs) -> Iterator[_Step]:
        """Any stretch that the operand does not match; it marks nothing."""
        stop = self._stop(at)
        for each in self.all(node, env):
            if each.is_empty or (first <= each.lo and each.hi < stop):
                yield _Step(at, each, ())

    # ------------------------------------------------------------ what is checked
    def _own(self, node: nodes.Event, rank: int, env: Pairs) -> Iterator[Check]:
        """The condition written on the event itself."""
        for part in conjuncts(node.condition):
            yield self._condition(part, rank, env, node)

    def _filtered(self, node: nodes.Filter, valuation: Valuation, env: Pairs) -> Iterator[Check]:
        registers = env | valuation.registers
        for on in node.conditions:
            for rank in sorted(rank for name, rank in valuation.bindings if name == on.variable):
                for part in conjuncts(on.condition):
                    check = self._condition(part, rank, registers, node)
                    ahead = any(reference.later for reference in references(part))
                    yield replace(check, rank=valuation.hi) if ahead else check

    def _condition(self, part: Expression, rank: int, registers: Pairs, owner: nodes.Pattern) -> Check:
        attributes = self.stream.events[rank].attributes
        reading = self._read_at(rank, registers)
        met = holds(part, attributes, *reading)
        return Check("condition", met, explained(part, attributes, *reading, holds=met), rank, rank, owner, part)

    def _whole_checks(self, node: nodes.Having, valuation: Valuation, env: Pairs) -> Iterator[Check]:
        reading = self._read_at_end(valuation, env)
        for condition in node.conditions:
            for part in conjuncts(condition):
                met = holds(part, {}, *reading)
                text = explained(part, {}, *reading, holds=met)
                yield Check("condition", met, text, valuation.hi, None, node, part)

    def _window(self, size: nodes.Size, valuation: Valuation, owner: nodes.Window | None) -> Check:
        start, end = valuation.start, valuation.end
        assert start is not None and end is not None  # noqa: PT018
        met = self.stream.fits(size, start, end)
        return Check("window", met, self._measured(size, start, end), end, None, owner)

    def _measured(self, size: nodes.Size, start: int, end: int) -> str:
        first, last = self.stream.events[start], self.stream.events[end]
        if size.unit == "events":
            return f"{end - start + 1} events from row {first.position} on, window {size}"
        if size.unit == "attribute":
            name = size.attribute or ""
            low, high = shown(first.attributes.get(name)), shown(last.attributes.get(name))
            return f"`{name}` went from {low} to {high}, window {size}"
        assert first.time is not None and last.time is not None  # noqa: PT018
        passed = passed_text(last.time - first.time, size.unit)  # type: ignore[operator]
        return f"{passed} after row {first.position}, window {size}"

    def _near(self, node: nodes.Pattern, before: Valuation, after: Valuation) -> Check:
        one, two = self._row(before.hi), self._row(after.lo)
        between = after.lo - before.hi - 1
        met = between == 0
        others = f"{between} event{'' if between == 1 else 's'}"
        text = f"{two} comes right after {one}" if met else f"{others} between {one} and {two}, where `:` allows none"
        return Check("contiguity", met, text, after.lo, None, node)

    def _missing(
        self, node: nodes.Pattern, negated: nodes.Pattern, before: Valuation, after: Valuation, env: Pairs
    ) -> Check:
        stretch = min(self._between(negated, before, after, env), key=_ending, default=None)
        since = "the beginning" if before.is_empty else self._row(before.hi)
        text = f"no `{negated}` between {since} and {self._row(after.lo)}"
        if stretch is not None:
            text = f"`{negated_text(negated)}`, but {self._rows(*stretch)} between {since} and {self._row(after.lo)}"
        rank = after.lo if stretch is None else stretch[1]
        return Check("negation", stretch is None, text, rank, None, node, negated)

    def _absent(self, node: nodes.Sequence, step: _Step, env: Pairs) -> _Step:
        """The step with checks on what is negated at its ends; after the end these are decided when the window ends."""
        size, each = self._sizes[id(node)], step.valuation
        checks = step.checks
        start, end = self._row(each.start or 0), self._row(each.end or 0)
        for negated in node.before:
            stretch = min(self._earlier(negated, each, size, env), key=_ending, default=None)
            where = f"before {start}, in the {size} that end at {end}"
            text = f"no `{negated}` {where}"
            if stretch is not None:
                one, two = (self._whole.events[rank].position for rank in stretch)
                text = f"`{negated_text(negated)}`, but {_row_numbers(one, two)} {where}"
            checks += (Check("negation", stretch is None, text, each.end or 0, None, node, negated),)
        for negated in node.after:
            stretch = min(self._later(negated, each, size, env), key=_ending, default=None)
            where = f"after {end}, in the {size} from {start} on"
            text = f"no `{negated}` {where}"
            if stretch is not None:
                text = f"`{negated_text(negated)}`, but {self._rows(*stretch)} {where}"
            rank = (each.end or 0) if stretch is None else stretch[1]
            checks += (Check("negation", stretch is None, text, rank, None, node, negated),)
        waits = each.waits | {(size, each.start or 0)} if node.after else each.waits
        return step._replace(valuation=replace(each, waits=waits), checks=checks)

    def _chosen(self, node: nodes.Select, step: _Step, env: Pairs) -> Checks:
        """Whether a strategy on a part chooses this valuation; nothing where the part's own checks already fail."""
        each = step.valuation
        if each.is_empty or not all(check.holds for check in step.checks):
            return ()
        name = node.strategy.value
        if node.strategy is nodes.Strategy.STRICT:
            met = is_interval(each.positions)
            text = f"{name}: " + ("no event between" if met else self._gaps(each))
        else:
            chosen = [other for other in self.all(node, env) if other.hi == each.hi]
            met = any(other.positions == each.positions for other in chosen)
            others = ", ".join(sorted({self._positions(other) for other in chosen}))
            text = f"{name} takes {self._positions(each)}" if met else f"{name} preferred {others}"
        return (Check("strategy", met, text, each.hi, None, node),)

    def _gaps(self, each: Valuation) -> str:
        ranks = range(min(each.positions), max(each.positions))
        return f"{', '.join(self._row(rank) for rank in ranks if rank not in each.positions)} lie between"

    # ------------------------------------------------------------ words
    def _row(self, rank: int) -> str:
        return f"row {self.stream.events[rank].position}"

    def _rows(self, lo: int, hi: int) -> str:
        return _row_numbers(self.stream.events[lo].position, self.stream.events[hi].position)

    def _positions(self, each: Valuation) -> str:
        numbers = [str(self.stream.events[rank].position) for rank in sorted(each.positions)]
        return f"row{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _row_numbers(first: int, last: int) -> str:
    return f"row {first} is" if first == last else f"rows {first} to {last} are"


def _ending(stretch: tuple[int, int]) -> tuple[int, int]:
    return stretch[1], stretch[0]


def _bound(node: nodes.Event, rank: int) -> Valuation:
    marked = rank if node.output else None
    bindings = frozenset((label, rank) for label in node.labels)
    stores = frozenset((name, rank) for name in node.writes - node.labels)
    return Valuation(rank, rank, marked, marked, bindings, stores)


def _labels(node: nodes.Event, above: tuple[nodes.Pattern, ...]) -> tuple[frozenset[str], list[Expression]]:
    """The variables that the match shows the event under, and the conditions on the event alone that filter it."""
    labels, conditions = node.labels, []
    for each in reversed(above):
        if isinstance(each, nodes.Named):
            labels |= {each.variable} if labels else frozenset()
        elif isinstance(each, nodes.Project):
            labels &= frozenset(each.variables)
        elif isinstance(each, nodes.Filter):
            conditions += [on.condition for on in each.conditions if on.variable in labels and not on.reads]
    return labels, conditions
