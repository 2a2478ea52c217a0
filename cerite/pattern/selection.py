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


@dataclass(frozen=True, slots=True)
class Select(Pattern):
    """`NEXT(φ)` and its sisters."""

    strategy: Strategy
    operand: Pattern
