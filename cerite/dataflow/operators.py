"""Operators, their composition, and the two stateless ones: Map and Filter (DEBS 2024, section 2.1).

An operator is fed one element at a time and answers with what it forwards or produces. Invariant: it forwards a
watermark only after everything that the watermark caused it to produce, so its outputs are not late for the next one.
An operator keeps what it has been fed: a new stream needs a new operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cerite.dataflow.event_time import Element, StreamTuple, Watermark, with_watermarks


class Operator(ABC):
    """Takes a stream, gives a stream."""

    @property
    def reach(self) -> int:
        """How far the watermark must be past a tuple for all that the tuple takes part in to be out."""
        return 0

    @property
    def discarded(self) -> int:
        """How many tuples came too late to count everywhere they should; as long as it is 0, nothing was lost."""
        return 0

    @abstractmethod
    def feed(self, element: Element) -> list[Element]:
        """What this element makes the operator send on."""

    def over(self, stream: Iterable[Element]) -> Iterator[Element]:
        """The output stream of an input stream."""
        for element in stream:
            yield from self.feed(element)

    def run(self, tuples: Iterable[StreamTuple], *, disorder: int, every: int) -> list[StreamTuple]:
        """All output tuples of a finite stream without watermarks; see `with_watermarks`."""
        stream = with_watermarks(tuples, disorder=disorder, every=every, tail=self.reach)
        return [element for element in self.over(stream) if isinstance(element, StreamTuple)]

    def __rshift__(self, other: Operator) -> Chain:
        return Chain(self, other)


class Chain(Operator):
    """Operators one after the other.

    >>> doubled = Map(lambda t: [t.payload, t.payload]) >> Filter(lambda t: t.payload != "b")
    >>> [t.payload for t in doubled.run([StreamTuple(1, "a"), StreamTuple(2, "b")], disorder=0, every=1)]
    ['a', 'a']
    """

    def __init__(self, *operators: Operator) -> None:
        self.stages: tuple[Operator, ...] = ()
        for each in operators:
            self.stages += each.stages if isinstance(each, Chain) else (each,)

    def feed(self, element: Element) -> list[Element]:
        """The element through all stages."""
        elements = [element]
        for stage in self.stages:
            elements = [out for each in elements for out in stage.feed(each)]
        return elements

    @property
    def reach(self) -> int:
        """The reach of all stages together."""
        return sum(stage.reach for stage in self.stages)

    @property
    def discarded(self) -> int:
        """What any stage discarded."""
        return sum(stage.discarded for stage in self.stages)


class Map(Operator):
    """M(S, f_M): zero, one or more payloads for every tuple, which keep the tuple's time."""

    def __init__(self, function: Callable[[StreamTuple], Iterable[Any]]) -> None:
        self._function = function  # f_M

    def feed(self, element: Element) -> list[Element]:
        """The images of a tuple; a watermark as it is."""
        if isinstance(element, Watermark):
            return [element]
        return [StreamTuple(element.time, payload) for payload in self._function(element)]


class Filter(Operator):
    """F(S, f_F): the tuples for which a condition holds."""

    def __init__(self, condition: Callable[[StreamTuple], bool]) -> None:
        self._condition = condition  # f_F

    def feed(self, element: Element) -> list[Element]:
        """The tuple if it passes; a watermark as it is."""
        return [element] if isinstance(element, Watermark) or self._condition(element) else []
