"""R-CER (DEBS 2024, section 5, Listing 5): a stateful function applied to every tuple in event-time order.

M₁ wraps tuples, A has WA = δ and WS = D_W + δ and feeds its outputs back, M₂ unwraps. The instance that ends right
after time τ stores the tuples of τ; once its predecessor's state has come through the loop, it runs f_M over them and
sends the new state on. Theorem 4: a key's first output is from the instance of its earliest tuple, and from then on
every instance gives one, in order. Theorem 3: the outputs are those of a plain fold over each key's tuples, in the
order of event time, then f_T, then arrival, each with the time of the tuple that caused it.

Here A feeds outputs back before the next instance is output, so a predecessor's state has always arrived by then; the
listing's `firstY` also serves where loops are slower.

A key costs one output and D_W/δ + 1 updates per step of δ from its first tuple on, tuples or not: choose δ
no finer than the timestamps are.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from cerite.core.errors import StreamError
from cerite.dataflow.aggregate import Aggregate, Instance, KeyFunction, Windows, same_key
from cerite.dataflow.event_time import Element, StreamTuple, Watermark, check_multiple
from cerite.dataflow.operators import Chain, Map, Operator

Rule = Callable[[Any, StreamTuple], tuple[Any, Iterable[Any]]]
TieOrder = Callable[[StreamTuple], Any]


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """φ' of Listing 5: what a tuple carries between M₁, A, A's loop and M₂."""

    payload: Any  # φ
    state: Any  # m
    key: Hashable  # k
    from_source: bool  # fromS


@dataclass(slots=True)
class _Slot:
    """γ.φ of Listing 5."""

    first: bool = True  # firstY: no earlier tuple of this key is known here
    tuples: list[StreamTuple] = field(default_factory=list)  # T
    state: Any = None  # m
    state_time: int | None = None  # mτ
    pending: bool = True


def arrival(t: StreamTuple) -> Any:
    """f_T*: tuples of the same time in the order in which they arrived."""
    return 0


def r_cer(rule: Rule, distance: int, *, key: KeyFunction = same_key, ties: TieOrder = arrival, delta: int = 1) -> Chain:
    """R-CER(S, f_K ← f_K°, f_M, f_T ← f_T*), where `m, Φ ← f_M(m, t)` begins with m = None.

    `distance` is D_W, the greatest distance between watermarks (A3); `ties` sorts tuples of one time.

    >>> sums = r_cer(lambda m, t: ((m or 0) + t.payload, [(m or 0) + t.payload]), distance=2)
    >>> [t.payload for t in sums.run([StreamTuple(5, 10), StreamTuple(3, 1), StreamTuple(9, 100)], disorder=2, every=2)]
    [1, 11, 111]
    """
    check_multiple("δ", delta, 1, least=1)
    check_multiple("the watermarks' distance D_W", distance, delta, least=delta)

    def wrap(t: StreamTuple) -> Iterable[_Wrapped]:
        return [_Wrapped(t.payload, None, key(t), True)]

    def unwrap(t: StreamTuple) -> Iterable[Any]:
        payloads: Iterable[Any] = t.payload.payload
        return payloads

    return Chain(Punctual(distance), Map(wrap), _looping(rule, distance, ties, delta), Map(unwrap))


def _looping(rule: Rule, distance: int, ties: TieOrder, delta: int) -> Aggregate:
    """A of Listing 5, over what M₁ sends and its own outputs."""

    def key(t: StreamTuple) -> Hashable:
        wrapped: _Wrapped = t.payload
        return wrapped.key

    def update(instance: Instance, t: StreamTuple) -> None:
        if instance.state is None:
            instance.state = _Slot()
        slot: _Slot = instance.state
        wrapped: _Wrapped = t.payload
        if not wrapped.from_source:
            slot.state, slot.state_time = wrapped.state, t.time
        elif t.time == instance.left + distance:
            insort(slot.tuples, StreamTuple(t.time, wrapped.payload), key=ties)
        else:
            slot.first = False

    def output(instance: Instance) -> Iterable[_Wrapped]:
        slot: _Slot = instance.state
        if not slot.pending or not (slot.first or slot.state_time == instance.left + distance - delta):
            return []
        matches: list[Any] = []
        for t in slot.tuples:
            slot.state, some = rule(slot.state, t)
            matches.extend(some)
        slot.pending = False
        return [_Wrapped(matches, slot.state, instance.key, False)]

    return Aggregate(Windows(delta, distance + delta, key, delta=delta), update, output, loop=True)


# What R-CER assumes of its stream (DEBS 2024, definition 1 and A3), ensured at its entrance.
#
# No tuple passes that is earlier than the watermark: it is counted and discarded whole. (Inside, it would still fall
# into instances that are open, and tell them to wait for a state that never comes.) Watermarks are at most D_W apart,
# and the first is at most D_W after the earliest tuple before it; a stream that breaks this is refused.


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
