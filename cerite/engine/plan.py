"""What a query asks of the engine: an automaton, the tests on events, and how its clauses are carried out.

The plan is made once per query; it knows nothing of the data. Invariant: running it gives the matches that
`cerite.pattern.semantics` gives, or the plan is refused here with the construct it does not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from cerite.automaton import Automaton
from cerite.automaton import strict as strict_automaton
from cerite.automaton.automaton import TRUE, Transition
from cerite.automaton.build import build
from cerite.automaton.guards import Guard, Test, distinct_tests
from cerite.errors import PatternError
from cerite.pattern.base import Pattern
from cerite.pattern.check import check
from cerite.pattern.naming import Project
from cerite.pattern.query import Consume, Query
from cerite.pattern.selection import Select, Strategy
from cerite.pattern.window import Size, Window
from cerite.predicate.expression import Attribute, Expression, IsNull, Not, conjunction

Semantics = Literal["valuations", "complex-events"]


@dataclass(frozen=True)
class Plan:
    """One query, ready to run.

    `window` bounds the run itself; `late_window` is checked on finished matches only, where the query selects first
    and drops what is too long then (`WHERE NEXT(φ) WITHIN ε`).
    """

    automaton: Automaton
    semantics: Semantics
    strategy: str = "all"
    window: Size | None = None
    late_window: Size | None = None
    partition: tuple[str, ...] = ()
    consume: str = "none"
    limit: int | None = None

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The conditions of the automaton's transitions."""
        return self.automaton.conditions

    @property
    def tests(self) -> tuple[Test, ...]:
        """The distinct tests that the guards are made of."""
        return distinct_tests(self.guards)

    @property
    def has_registers(self) -> bool:
        """Whether some condition reads another event."""
        return any(guard.reads for guard in self.guards)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables a match may bind, in alphabetical order."""
        return tuple(sorted(frozenset().union(*self.automaton.labels)))

    @property
    def shared_clock(self) -> bool:
        """Whether one clock drives the windows of all partitions."""
        return self.window is None or self.window.is_time

    @property
    def counts_without_enumerating(self) -> bool:
        """Whether the number of matches follows from the automaton alone."""
        return self.strategy == "all" and self.limit is None and self.late_window is None


def plan(query: Query, semantics: Semantics = "valuations") -> Plan:
    """The plan of a checked query.

    >>> from cerite.language.ceql import parse_query
    >>> made = plan(parse_query("SELECT * FROM S WHERE A AS x ; B FILTER x[id = 1] WITHIN 5 EVENTS"))
    >>> [str(test) for test in made.tests], made.window.amount
    (['A[id = 1]', 'B'], 5)
    """
    if semantics not in ("valuations", "complex-events"):
        raise ValueError(f"semantics is 'valuations' or 'complex-events', not {semantics!r}")
    check(query)
    try:
        return _plan(query, semantics)
    except PatternError as error:
        raise error.at(query.source) from None


def _plan(query: Query, semantics: Semantics) -> Plan:
    layers = _peeled(query.where, query.within)
    pattern = layers.pattern if query.variables is None else Project(layers.pattern, query.variables)
    strategy = query.strategy
    if layers.operator is not None:
        if strategy is not None or query.variables is not None:
            raise PatternError(
                "the engine runs one selection strategy, without a projection around it", span=query.where.span,
                hint="write the strategy in SELECT: SELECT NEXT x, y FROM …",
            )  # fmt: skip
        strategy = layers.operator
    automaton = build(pattern)
    if strategy is Strategy.STRICT:  # a property of each match alone: no other match has to be looked at
        automaton, strategy = strict_automaton(automaton), None
    window, late = _one_window(layers.inner, query.where), _one_window(layers.outer, query.where)
    if late is not None and query.consume is not Consume.NONE:
        raise PatternError(
            "the engine does not consume where the window is applied after a selection", span=query.where.span,
            hint="write the strategy in SELECT: SELECT NEXT … WITHIN … CONSUME BY …",
        )  # fmt: skip
    if window is not None and window.attribute is not None:
        automaton = _with_known_ends(automaton, window.attribute)
    return Plan(
        automaton=automaton if semantics == "valuations" else automaton.with_plain_marks(),
        semantics=semantics, strategy="all" if strategy is None else strategy.value.lower(),
        window=window, late_window=late, partition=query.partition,
        consume="any" if query.consume is Consume.PARTITION and not query.partition else query.consume.value.lower(),
        limit=query.limit,
    )  # fmt: skip


@dataclass(frozen=True)
class _Layers:
    """What stands around the whole pattern: a selection operator, windows inside it and windows outside."""

    pattern: Pattern
    operator: Strategy | None
    inner: list[Size]
    outer: list[Size]


def _peeled(pattern: Pattern, within: Size | None) -> _Layers:
    operator: Strategy | None = None
    sizes: list[Size] = [] if within is None else [within]
    outer: list[Size] = []
    while True:
        if isinstance(pattern, Window):
            sizes.append(pattern.size)
        elif isinstance(pattern, Select) and pattern.strategy is not Strategy.STRICT and operator is None:
            operator, outer, sizes = pattern.strategy, sizes, []
        else:
            return _Layers(pattern, operator, sizes, outer)
        pattern = pattern.operand


def _one_window(sizes: list[Size], pattern: Pattern) -> Size | None:
    if not sizes:
        return None
    kinds = {"time" if size.is_time else (size.unit, size.attribute) for size in sizes}
    if len(kinds) > 1:
        raise PatternError("the engine runs one kind of window per query", span=pattern.span, hint="keep one WITHIN")
    return min(sizes, key=lambda size: size.milliseconds if size.is_time else size.amount)


def _with_known_ends(automaton: Automaton, attribute: str) -> Automaton:
    """A match starts and ends only at events that have the window's attribute."""
    known = Not(IsNull(Attribute(attribute)))
    guards = list(automaton.conditions)

    def transitions() -> Iterator[Transition]:
        for each in automaton.transitions:
            if each.source != automaton.initial and each.target not in automaton.finals:
                yield each
                continue
            guard = _narrowed(Guard() if each.condition == TRUE else guards[each.condition], known)
            if guard not in guards:
                guards.append(guard)
            yield replace(each, condition=guards.index(guard))

    found = tuple(transitions())
    used = sorted({each.condition for each in found} - {TRUE})
    number = {TRUE: TRUE} | {old: new for new, old in enumerate(used)}
    renumbered = tuple(replace(each, condition=number[each.condition]) for each in found)
    return replace(automaton, transitions=renumbered, conditions=tuple(guards[old] for old in used))


def _narrowed(guard: Guard, condition: Expression) -> Guard:
    """The guard with one more condition, inside its test if it has just one."""
    first = next(iter(guard.tests), None)
    if len(guard.tests) == 1 and isinstance(first, Test):
        return replace(guard, tests=frozenset((Test(first.type, conjunction(first.condition, condition)),)))
    return guard & Guard(frozenset((Test(None, condition),)))
