"""What R-CER assumes of its stream (DEBS 2024, definition 1 and A3), made sure of at its entrance.

No tuple passes that is earlier than the watermark: it is counted and discarded whole. (Inside, it would still fall
into instances that are open, and tell them to wait for a state that never comes.) Watermarks are at most D_W apart, and
the first is at most D_W after the earliest tuple before it; a stream that breaks this is refused.
"""

from __future__ import annotations

from cerite.dataflow.operators import Operator
from cerite.dataflow.streams import Element, Watermark
from cerite.errors import StreamError


class Punctual(Operator):
    """Lets through what is on time."""

    def __init__(self, distance: int) -> None:
        self._distance = distance  # D_W
        self._watermark: int | None = None
        self._earliest: int | None = None
        self._late = 0

    @property
    def discarded(self) -> int:
        """How many tuples were late."""
        return self._late

    def feed(self, element: Element) -> list[Element]:
        """The element, unless it is late."""
        if isinstance(element, Watermark):
            self._check(element.time)
            self._watermark = element.time
        elif self._watermark is None:
            self._earliest = element.time if self._earliest is None else min(self._earliest, element.time)
        elif element.time < self._watermark:
            self._late += 1
            return []
        return [element]

    def _check(self, time: int) -> None:
        before = self._earliest if self._watermark is None else self._watermark
        if before is not None and time - before > self._distance:
            what = "the earliest tuple" if self._watermark is None else "the watermark before it"
            raise StreamError(
                f"the watermark {time} is {time - before} after {what}, but D_W is {self._distance}",
                hint="send watermarks more often, or give R-CER a larger distance",
            )
