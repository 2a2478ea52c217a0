"""What a query asks of the engine: an automaton, the tests on events, and how its clauses are carried out.

There is one plan per query; it knows nothing about the data. Invariant: running it gives the matches that
`cerite.reference.semantics` gives; a query that the engine does not run is refused here, with the construct at fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from cerite.automaton import Automaton
from cerite.automaton.automaton import PLAIN, TRUE, Transition
from cerite.automaton.build import build
from cerite.automaton.guards import Guard, Test, distinct_tests
from cerite.automaton.labelling import known_by_marks
from cerite.core.errors import PatternError
from cerite.core.rejected import Rejected
from cerite.pattern import nodes
from cerite.pattern.absences import deciding, waiting_parts
from cerite.pattern.check import check
from cerite.pattern.query import Consume, QuerySpec, Suppress
from cerite.pattern.rewrite.absent import kept_open, one_window
from cerite.predicate.expression import Attribute, Expression, IsNull, Not, conjunction, variables

Semantics = Literal["valuations", "complex-events"]


@dataclass(frozen=True)
class Plan:
    """One query, ready to run; `window` bounds the whole match."""

    automaton: Automaton
    semantics: Semantics
    strategy: str = "all"
    window: nodes.Size | None = None
    partition: tuple[str, ...] = ()
    consume: str = "none"
    limit: int | None = None
    suppress: Suppress | None = None

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The conditions of the automaton's transitions."""
        return self.automaton.conditions

    @property
    def every_guard(self) -> tuple[Guard, ...]:
        """The same, and those of patterns that must be absent before the match or a part."""
        return (*self.guards, *(guard for each in self.automaton.preceding for guard in each.automaton.conditions))

    @property
    def tests(self) -> tuple[Test, ...]:
        """The distinct tests that the guards consist of."""
        return distinct_tests(self.guards)

    @property
    def has_registers(self) -> bool:
        """Whether a run carries more than its state: stored values, watched patterns, or a start that comes late."""
        automaton = self.automaton
        return bool(automaton.watchers or automaton.before or self.late) or any(guard.reads for guard in self.guards)

    @property
    def late(self) -> bool:
        """Whether matches may be decided only when windows are over, later than at their last events."""
        return bool(self.automaton.tails)

    @property
    def has_absence(self) -> bool:
        """Whether something is negated at an end of the pattern."""
        return self.late or bool(self.automaton.preceding)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables a match may bind, in alphabetical order."""
        return tuple(sorted(frozenset().union(*self.automaton.labels)))

    @property
    def shared_clock(self) -> bool:
        """Whether one clock drives the windows of all partitions."""
        return self.deciding is None or self.deciding.is_time

    @property
    def deciding(self) -> nodes.Size | None:
        """The window that says when something is over: the query's, or that of parts that end in NOT."""
        return self.window if self.tick is None else self.tick

    @property
    def tick(self) -> nodes.Size | None:
        """The longest of the windows that decide parts of the pattern that end in NOT, if there are such parts."""
        return max((size for _, size in self.automaton.waits), key=lambda size: size.width, default=None)

    @property
    def counts_without_enumerating(self) -> bool:
        """Whether the number of matches follows from the automaton alone."""
        return self.strategy == "all" and self.limit is None and self.suppress is None

    @cached_property
    def reports_one(self) -> bool:
        """Whether every event that completes a match reports exactly one, so that these events can be counted."""
        chosen = self.strategy in ("next", "last") and known_by_marks(self.automaton)
        return self.suppress is None and (self.limit == 1 or chosen)

    @property
    def everything(self) -> Plan:
        """The plan that also reports what SUPPRESS leaves out."""
        return self if self.suppress is None else replace(self, suppress=None, limit=None)

    @property
    def beyond_window(self) -> Rejected | None:
        """Why the events of its window do not decide a match alone, None if they do: then a stream can be cut by time.

        >>> from cerite.language.ceql import parse_query
        >>> text = "SELECT * FROM S WHERE A ; B WITHIN 5 EVENTS"
        >>> plan(parse_query(text)).beyond_window, plan(parse_query(text + " CONSUME BY ANY")).beyond_window
        (None, Rejected(reason='CONSUME BY: what a match forgets depends on the matches before it'))
        """
        if self.consume != "none":
            return Rejected("CONSUME BY: what a match forgets depends on the matches before it")
        if self.suppress is not None:
            return Rejected("SUPPRESS: what is reported depends on the match reported before it")
        if self.needs_history:
            return Rejected("a part of the pattern looks at everything before it, not just at the window")
        if self.has_absence:
            return Rejected("NOT at an end of the pattern: what is absent may lie outside the match's own window")
        if self.window is None:
            return Rejected("no window: a match may span the whole stream")
        return None

    @property
    def across_partitions(self) -> Rejected | None:
        """Why partitions are not independent of each other, None if they are."""
        if self.consume == "any":
            return Rejected("CONSUME BY ANY: what a match forgets depends on every match before it")
        if self.suppress is not None and not self.suppress.per_partition:
            hint = "; with PER PARTITION partitions are independent" if self.partition else ""
            return Rejected(f"SUPPRESS: what is reported depends on the match reported before it{hint}")
        return None

    @property
    def needs_history(self) -> bool:
        """Whether what matches at an event may depend on events before the window, because runs from there compare."""
        automata = (self.automaton, *(each.automaton for each in self.automaton.preceding))
        watchers = (watcher for each in automata for watcher in each.watchers)
        return bool(self.automaton.before) or any(watcher.kind != PLAIN for watcher in watchers)


def plan(query: QuerySpec, semantics: Semantics = "valuations") -> Plan:
    """The plan of a checked query.

    >>> from cerite.language.ceql import parse_query
    >>> pairs = plan(parse_query("SELECT * FROM S WHERE A AS x ; B FILTER x[id = 1] WITHIN 5 EVENTS"))
    >>> [str(test) for test in pairs.tests], pairs.window.amount
    (['A[id = 1]', 'B'], 5)
    """
    if semantics not in ("valuations", "complex-events"):
        raise PatternError(
            f"there is no semantics {semantics!r}", hint="it is 'valuations' or, without variables, 'complex-events'"
        )
    check(query)
    try:
        if semantics != "valuations":
            _refuse_measured(query)
        return _plan(query, semantics)
    except PatternError as error:
        raise error.at(query.source) from None


def _plan(query: QuerySpec, semantics: Semantics) -> Plan:
    layers = _peeled(query)
    pattern, strategy, window = layers.pattern, layers.strategy, layers.window
    if waiting_parts(pattern):
        _refuse_waiting(query, strategy)
        pattern, window = kept_open(pattern, window)
    if query.variables is not None:
        pattern = nodes.Project(pattern, query.variables)
    if strategy is nodes.Strategy.STRICT:  # a property of each match alone: no other match has to be looked at
        pattern, strategy = nodes.Select(nodes.Strategy.STRICT, pattern), None
    automaton = build(pattern, None if window is None else window.attribute)
    if window is not None and window.attribute is not None:
        automaton = _with_known_ends(automaton, window.attribute)
    return Plan(
        automaton=automaton if semantics == "valuations" else automaton.with_plain_marks(),
        semantics=semantics, strategy="all" if strategy is None else strategy.value.lower(),
        window=window, partition=query.partition,
        consume="any" if query.consume is Consume.PARTITION and not query.partition else query.consume.value.lower(),
        limit=query.limit, suppress=_suppress(query),
    )  # fmt: skip


def _suppress(query: QuerySpec) -> Suppress | None:
    """The SUPPRESS clause; without partitions there is one scope."""
    return query.suppress if query.partition or query.suppress is None else Suppress(query.suppress.size)


def _refuse_waiting(query: QuerySpec, strategy: nodes.Strategy | None) -> None:
    """Refuse clauses that compare the matches of an event if not all of them are decided at that event."""
    part = "a part of this pattern ends in NOT: whether its matches are some is known only when its window is over"
    if strategy not in (None, nodes.Strategy.STRICT):
        raise PatternError(
            f"{strategy.value} chooses among the matches that end at an event, and {part}", span=query.where.span,
            hint=f"choose inside the part: `({strategy.value}(φ) ; NOT ν WITHIN 5 seconds) ; χ`",
        )  # fmt: skip
    sizes = {size for size in deciding(query.where, query.within) if not size.is_time}
    chosen = "consume" if query.consume is not Consume.NONE else "limit" if query.limit is not None else None
    if chosen is not None and len(sizes) > 1:
        raise PatternError(
            f"the engine does not run {'CONSUME BY' if chosen == 'consume' else 'LIMIT'} where NOTs are decided by "
            "windows of several numbers of events: one event, or the end of the data, may end several of them at once",
            span=query.clauses.get(chosen), hint="give them windows of one length, or of time",
        )  # fmt: skip


def _refuse_measured(query: QuerySpec) -> None:
    """Refuse measures of variables without variables: there is nothing to measure but the match as a whole."""
    for measure in query.measures:
        if variables(measure.expression):
            raise PatternError(
                f"`{measure.expression}` measures a variable, and semantics='complex-events' forgets variables",
                span=measure.span, hint="leave out `semantics`; COUNT(*), START_TIME(), END_TIME(), DURATION() remain",
            )  # fmt: skip


@dataclass(frozen=True)
class _Layers:
    """A pattern without the window and the strategy that stand around all of it."""

    pattern: nodes.Pattern
    strategy: nodes.Strategy | None
    window: nodes.Size | None


def _peeled(query: QuerySpec) -> _Layers:
    """The query in layers: what stands around the whole pattern runs faster as a clause, if it can be one.

    A strategy around everything becomes the clause if nothing is applied after it; so do all windows of one kind.
    """
    strategy = query.strategy
    pattern, window = one_window(query.where, query.within)
    if strategy is None and query.variables is None and window is None and isinstance(pattern, nodes.Select):
        strategy, pattern = pattern.strategy, pattern.operand
    kept: list[nodes.Size] = []
    while isinstance(pattern, nodes.Window):
        if window is None or window.measure == pattern.size.measure:
            window = pattern.size if window is None else min(window, pattern.size, key=lambda size: size.width)
        else:
            kept.append(pattern.size)
        pattern = pattern.operand
    for size in kept:
        pattern = nodes.Window(pattern, size)
    return _Layers(pattern, strategy, window)


def _with_known_ends(automaton: Automaton, attribute: str) -> Automaton:
    """Let a match start and end only at events that have the window's attribute; events passed over may lack it."""
    known = Not(IsNull(Attribute(attribute)))
    guards = list(automaton.conditions)
    unstarted = automaton.before | {automaton.initial}
    tails, watched = automaton.tails, automaton.watched

    def transitions() -> Iterator[Transition]:
        for each in automaton.transitions:
            starts = each.source in unstarted and each.target not in automaton.before
            ends = each.target in automaton.finals or (each.target in tails and each.source not in tails)
            ends = ends and each.source not in watched  # what must not occur is no match, and ends anywhere
            if not starts and not ends:
                yield each
                continue
            guard = _narrowed(Guard() if each.condition == TRUE else guards[each.condition], known)
            if guard not in guards:
                guards.append(guard)
            yield replace(each, condition=guards.index(guard))

    narrowed = tuple(transitions())
    used = sorted({each.condition for each in narrowed} - {TRUE})
    number = {TRUE: TRUE} | {old: new for new, old in enumerate(used)}
    renumbered = tuple(replace(each, condition=number[each.condition]) for each in narrowed)
    return replace(automaton, transitions=renumbered, conditions=tuple(guards[old] for old in used))


def _narrowed(guard: Guard, condition: Expression) -> Guard:
    """The guard with one more condition, inside its test if it has just one."""
    first = next(iter(guard.tests), None)
    if len(guard.tests) == 1 and isinstance(first, Test):
        return replace(guard, tests=frozenset((Test(first.type, conjunction(first.condition, condition)),)))
    return guard & Guard(frozenset((Test(None, condition),)))
