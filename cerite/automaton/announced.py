"""Patterns that are absent before a match and read the match's first event: `NOT B[id = x.id] ; A AS x`.

Which B is meant is known only when the A is there. So B and the A after it are followed together, as the sequence
`B AS b ; A[b.id = id]`, and what matters at an event is when the latest such sequence that ends at it began. Conditions
move to the end, where they look back at what the absent pattern has bound. (See `absences`.)

Invariant: the sequence `followed` ends at an event exactly where the absent pattern occurs before that event, if its
conditions read that event as what comes later.
"""

from __future__ import annotations

from dataclasses import replace

from cerite.automaton.scopes import Registers
from cerite.core.errors import PatternError
from cerite.pattern import nodes
from cerite.pattern.nodes import Event, Filter, On, Pattern, Sequence
from cerite.pattern.variables import counts, nullable, surely_precedes
from cerite.predicate import expression as ex
from cerite.predicate.expression import transform as change_condition


def followed(absent: Pattern, names: frozenset[str], match: Pattern, registers: Registers) -> Pattern:
    """The absent pattern, then the first event of the match, from which all `names` are read."""
    firsts = [first_event(match, name) for name in sorted(names)]
    for name, first in zip(sorted(names), firsts, strict=True):
        if first is None:
            raise PatternError(
                f"the engine runs NOT at the start that reads a later event only if that is the match's first, and "
                f"`{name}` is another", span=absent.span,
                hint="compare with the first event, or let all be in one partition: PARTITION BY [id]",
            )  # fmt: skip
    conditions: list[ex.Expression] = []
    before = _Announcing(absent, names, registers, conditions).moved(absent)
    types = {first.type for first in firsts if first is not None}
    last = Event(types.pop() if len(types) == 1 else None, ex.conjunction(*conditions))
    return Sequence((before, last), span=absent.span)


def first_event(node: Pattern, name: str) -> Event | None:
    """The event that a variable holds, if that is always the first of the pattern.

    >>> from cerite.language.ceql import parse_pattern
    >>> print(first_event(parse_pattern("(A AS x FILTER x[v > 1]) ; B AS y"), "x"))
    A
    >>> first_event(parse_pattern("A AS x ; B AS y"), "y")
    """
    match node:
        case Event():
            return node if name in node.writes else None
        case nodes.Named(operand=operand, variable=variable):
            single = _single(operand) if variable == name else None
            return first_event(operand, name) if single is None else single
        case Filter() | nodes.Having() | nodes.Window() | nodes.Select() | nodes.Project():
            return first_event(node.operand, name)
        case Sequence(parts=parts) | nodes.Concat(parts=parts):
            return None if nullable(parts[0]) else first_event(parts[0], name)
        case nodes.Union(parts=parts):
            events = [first_event(part, name) for part in parts]
            known = [event for event in events if event is not None]
            alike = len({event.type for event in known}) == 1
            return None if len(known) < len(events) else known[0] if alike else Event(None)
    return None


def _single(node: Pattern) -> Event | None:
    """The one event that a pattern consists of, whatever its name and filters."""
    while isinstance(node, (nodes.Named, Filter)):
        node = node.operand
    return node if isinstance(node, Event) else None


class _Announcing:
    """Takes out of an absent pattern the conditions that wait for what comes after it."""

    def __init__(
        self, absent: Pattern, names: frozenset[str], registers: Registers, conditions: list[ex.Expression]
    ) -> None:
        self._absent, self._names, self._registers, self._conditions = absent, names, registers, conditions

    def moved(self, node: Pattern) -> Pattern:
        """A part without these conditions."""
        if isinstance(node, Event):
            return self._event(node)
        changed = node.map(self.moved)
        if not isinstance(changed, Filter):
            return changed
        conditions = tuple(each for on in changed.conditions for each in self._filter(on))
        return replace(changed, conditions=conditions) if conditions else changed.operand

    def _event(self, event: Event) -> Event:
        waiting, kept = self._split(event.condition)
        if not waiting:
            return event
        stored = replace(
            event,
            condition=ex.conjunction(*kept),
            register=event.register or self._registers.new(event.type or "event"),
        )
        assert stored.register is not None
        for part in waiting:
            for other in _others(part, self._names):
                raise _unclear(event, other)
            self._conditions.append(self._turned(part, stored.register))
        return stored

    def _filter(self, on: On) -> tuple[On, ...]:
        waiting, kept = self._split(on.condition)
        for part in waiting:
            for other in _others(part, self._names):
                later = any(each.later for each in ex.references(part) if each.variable == other)
                known = counts(self._absent, other) == (1, 1)
                if not known or not (later or surely_precedes(self._absent, other, on.variable)):
                    raise _unclear(self._absent, other)
            if counts(self._absent, on.variable) != (1, 1):
                raise _unclear(self._absent, on.variable)
            self._conditions.append(self._turned(part, on.variable))
        left = ex.conjunction(*kept)
        return () if left is None else (replace(on, condition=left),)

    def _split(self, condition: ex.Expression | None) -> tuple[list[ex.Expression], list[ex.Expression]]:
        """The parts of a conjunction that wait for what comes after, and the others."""
        if condition is None:
            return [], []
        parts = condition.operands if isinstance(condition, ex.And) else (condition,)
        waits = [any(each.variable in self._names and each.later for each in ex.references(part)) for part in parts]
        pairs = list(zip(waits, parts, strict=True))
        return [part for some, part in pairs if some], [part for some, part in pairs if not some]

    def _turned(self, part: ex.Expression, register: str) -> ex.Expression:
        """The condition as it is checked at the first event of the match, about what the register holds."""

        def change(node: ex.Expression) -> ex.Expression:
            if isinstance(node, ex.Attribute):
                return ex.Reference(register, node.name, span=node.span)
            if isinstance(node, ex.Reference):
                own = node.later and node.variable in self._names
                return ex.Attribute(node.name, span=node.span) if own else replace(node, later=False)
            return node

        return change_condition(part, change)


def _others(part: ex.Expression, names: frozenset[str]) -> list[str]:
    """What a condition reads besides what comes after."""
    return sorted({each.variable for each in ex.references(part)} - names)


def _unclear(node: Pattern, name: str) -> PatternError:
    return PatternError(
        f"NOT at the start reads a later event together with `{name}`, and it is not clear which event that is",
        span=node.span, hint="compare with one of them at a time: two conditions, joined by AND",
    )  # fmt: skip
