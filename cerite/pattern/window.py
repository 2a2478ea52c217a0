"""Windows: how far apart a match's first and last event may be, by time, by an attribute, or by number of events.

Both ends belong to the window (CORE: end − start ≤ ε; SRT report, definition 39: max − min + 1 ≤ w).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from cerite.errors import Span
from cerite.names import quoted
from cerite.pattern.base import Pattern

UNITS = {"milliseconds": 1, "seconds": 1_000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
_SHORT = {"ms": "milliseconds", "s": "seconds", "sec": "seconds", "min": "minutes", "h": "hours", "d": "days"}


def unit_named(word: str) -> str | None:
    """The unit a word stands for, if it is one: any case, singular or plural, or an abbreviation.

    >>> unit_named("Minute"), unit_named("ms"), unit_named("EVENTS"), unit_named("weeks")
    ('minutes', 'milliseconds', 'events', None)
    """
    lowered = word.lower()
    unit = _SHORT.get(lowered, lowered if lowered.endswith("s") else lowered + "s")
    return unit if unit in UNITS or unit == "events" else None


def of_floats(width: Fraction) -> int | float:
    """The width that differences of floats are compared with: a whole number as it is, else the nearest double."""
    return int(width) if width.denominator == 1 else float(width)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a window is: an amount of a time unit, of an attribute, or of events."""

    amount: int | float | Fraction
    unit: str = "events"
    attribute: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @staticmethod
    def events(count: int) -> Size:
        """`n EVENTS`."""
        return Size(count, "events")

    @staticmethod
    def of(attribute: str, amount: int | float | Fraction) -> Size:
        """`amount [attribute]`."""
        return Size(amount, "attribute", attribute)

    @property
    def is_time(self) -> bool:
        """Whether the event time is what counts."""
        return self.unit in UNITS

    @property
    def width(self) -> Fraction:
        """The length exactly as written, of a time window in milliseconds: `0.1` is a tenth, not the nearest double.

        >>> Size(1.001, "seconds").width, Size.of("price", 0.1).width
        (Fraction(1001, 1), Fraction(1, 10))
        """
        exact = Fraction(Decimal(repr(self.amount))) if isinstance(self.amount, float) else Fraction(self.amount)
        return exact * UNITS.get(self.unit, 1)

    def __str__(self) -> str:
        if self.unit == "attribute":
            return f"{self.amount!r} [{quoted(self.attribute or '')}]"
        return f"{self.amount!r} {'EVENTS' if self.unit == 'events' else self.unit}"


@dataclass(frozen=True, slots=True)
class Window(Pattern):
    """`(φ WITHIN size)`; SREMO's `e[1..w]`."""

    operand: Pattern
    size: Size
