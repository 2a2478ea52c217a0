"""Patterns without sub-patterns: one event, nothing consumed (ε), no match at all (∅).

`Event` is both CEL's `R` (CORE, Figure 2) and SREMO's terminal `φ ↑ o ↓ r` (SRT report, definition 15): one event
that satisfies a condition, marked (•) or not (⊗), perhaps stored in a register. A marked event is bound to the
variable named like its type (`_` for any type) and to the register's; an unmarked one is only stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from cerite.pattern.base import Pattern
from cerite.predicate.expression import Expression

ANY_TYPE = "_"


@dataclass(frozen=True, slots=True)
class Empty(Pattern):
    """ε: matches where nothing is consumed."""


@dataclass(frozen=True, slots=True)
class Nothing(Pattern):
    """∅: never matches."""


@dataclass(frozen=True, slots=True)
class Event(Pattern):
    """One event. `type` None is any type; `output` False is SREMO's ⊗."""

    type: str | None
    condition: Expression | None = None
    output: bool = True
    register: str | None = None

    @property
    def labels(self) -> frozenset[str]:
        """The variables the event's position is bound to."""
        if not self.output:
            return frozenset()
        own = frozenset((ANY_TYPE if self.type is None else self.type,))
        return own if self.register is None else own | {self.register}

    @property
    def writes(self) -> frozenset[str]:
        """The registers that hold the event afterwards: its variables, and where it is stored."""
        return self.labels if self.register is None else self.labels | {self.register}
