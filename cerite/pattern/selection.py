"""Selection strategies of ICDT 2019, section 4, as operators: which of the matches with the same end are kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cerite.pattern.base import Pattern


class Strategy(Enum):
    """STRICT: an interval of the stream. NEXT, LAST: the greatest in ≤next, ≤last. MAX: no strictly larger one."""

    STRICT = "STRICT"
    NEXT = "NEXT"
    LAST = "LAST"
    MAX = "MAX"

    @staticmethod
    def named(word: str) -> Strategy:
        """The strategy a word stands for, in any case; `NXT` is ICDT's spelling of NEXT."""
        upper = word.upper()
        if upper != "NXT" and upper not in Strategy.__members__:
            raise ValueError(f"unknown strategy {word!r}: one of {', '.join(Strategy.__members__)}")
        return Strategy.NEXT if upper == "NXT" else Strategy(upper)


@dataclass(frozen=True, slots=True)
class Select(Pattern):
    """`NEXT(φ)` and its sisters."""

    strategy: Strategy
    operand: Pattern
