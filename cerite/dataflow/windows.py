"""Γ(WA, WS, S, f_K, L): which window instances there are, and which of them a tuple falls into (section 2.1).

An instance γ covers [ℓ·WA, ℓ·WA + WS) for one key. The paper counts ℓ from 0; here ℓ is any integer, because
Listing 5 needs the instance that begins D_W before a tuple even where that is before time 0.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from cerite.dataflow.errors import DataflowError, check_multiple
from cerite.dataflow.keys import KeyFunction, same_key
from cerite.errors import StreamError


@dataclass(frozen=True, slots=True)
class Windows:
    """Γ, checked: sliding if WA < WS, tumbling if WA = WS; δ is the step in which event time advances.

    >>> list(Windows(advance=2, size=5).lefts(6))
    [2, 4, 6]
    """

    advance: int  # WA
    size: int  # WS
    key: KeyFunction = same_key  # f_K
    lateness: int = 0  # L
    delta: int = 1  # δ

    def __post_init__(self) -> None:
        check_multiple("δ", self.delta, 1, least=1)
        check_multiple("the window size WS", self.size, self.delta, least=1)
        check_multiple("the window advance WA", self.advance, self.delta, least=1)
        check_multiple("the allowed lateness L", self.lateness, 1, least=0)
        if self.advance > self.size:
            raise DataflowError(
                f"the window advance WA = {self.advance} exceeds the window size WS = {self.size}",
                hint="tuples between two instances would fall into none; use WA ≤ WS",
            )

    def lefts(self, time: int) -> range:
        """The left boundaries of the instances that cover this time, in rising order."""
        first = ((time - self.size) // self.advance + 1) * self.advance
        return range(first, time + 1, self.advance)

    def output_time(self, left: int) -> int:
        """t_o.τ: the latest time a tuple of this instance can have."""
        return left + self.size - self.delta

    def complete(self, left: int, watermark: int | None) -> bool:
        """Whether no tuple that is on time can fall into this instance any more."""
        return watermark is not None and left + self.size <= watermark

    def gone(self, left: int, watermark: int | None) -> bool:
        """Whether not even a late tuple is let into this instance."""
        return watermark is not None and left + self.size + self.lateness <= watermark

    def check_time(self, what: str, time: int) -> None:
        """Refuse event times that are not whole steps of δ."""
        if isinstance(time, bool) or not isinstance(time, int):
            raise StreamError(
                f"{what} has the time {time!r}, not a whole number", hint="use milliseconds since some epoch"
            )
        if time % self.delta:
            raise StreamError(
                f"{what} has the time {time}, no multiple of δ = {self.delta}",
                hint="round times, or choose a smaller δ",
            )


@dataclass(slots=True)
class Instance:
    """γ: one window instance of one key."""

    key: Hashable  # γ.k
    left: int  # γ.l
    state: Any = None  # γ.φ
    fired: bool = field(default=False, repr=False)  # whether f_O was invoked on it
