"""SREMO's regular negation `!e` (SRT report, section 5.1): any stretch of the stream, also an empty one, that e does
not match. It marks nothing and leaves the registers as they are (corollary 43: outputs are ignored).
"""

from __future__ import annotations

from dataclasses import dataclass

from cerite.pattern.base import Pattern


@dataclass(frozen=True, slots=True)
class Complement(Pattern):
    """`COMPLEMENT(e)`, SREMO's `!e`."""

    operand: Pattern
