"""One pattern after another: with gaps (`;`), with negation in the gaps, or without gaps (`:`, SREMO's `·`).

A part that consumed nothing (ε, from `*` or `?`) is neutral: `A ; B* ; C` is `A ; C OR A ; B+ ; C`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cerite.pattern.base import Pattern


@dataclass(frozen=True, slots=True)
class Sequence(Pattern):
    """`φ ; ψ`: each part starts after the one before ends, anything may lie between.

    `absent[i]` holds the patterns negated between part i and part i+1 (`φ ; NOT ν ; ψ`): no occurrence of them lies
    strictly between the end of what comes before and the start of what comes after.
    """

    parts: tuple[Pattern, ...]
    absent: tuple[tuple[Pattern, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.absent:
            object.__setattr__(self, "absent", ((),) * (len(self.parts) - 1))
        Pattern.__post_init__(self)

    @property
    def negated(self) -> tuple[Pattern, ...]:
        """All negated patterns."""
        return tuple(each for gap in self.absent for each in gap)


@dataclass(frozen=True, slots=True)
class Concat(Pattern):
    """`φ : ψ`: each part starts at the very next event."""

    parts: tuple[Pattern, ...]
