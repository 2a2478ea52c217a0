"""Repetition: `φ+`, `φ*`, `φ?`, `φ{n,m}` with gaps, and their contiguous forms `φ:+`, ... (SREMO's star is `φ:*`)."""

from __future__ import annotations

from dataclasses import dataclass

from cerite.pattern.base import Pattern


@dataclass(frozen=True, slots=True)
class Iteration(Pattern):
    """φ repeated `least` to `most` times (None: without bound), one repetition after the other."""

    operand: Pattern
    least: int = 1
    most: int | None = None
    contiguous: bool = False
