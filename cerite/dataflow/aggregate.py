"""The Aggregate A(Γ(WA, WS, S, f_K, L), f_U, f_O) of DEBS 2024, section 2: the one stateful operator.

f_U(γ, t) updates an instance's state with every tuple that falls into it. When the watermark reaches an instance's
end, f_O(γ) gives its output payloads: once per instance, in γ.l order, before the watermark is forwarded.

*Lateness.* An instance is kept until the watermark is L past its end. A late tuple is added to the instances that are
still kept; f_O is invoked again at once on those that had been output, and gives an update. (The paper prints
`γ.l + WS ≤ W + L` as the condition; its prose, "delaying the purging of γs by L", means `W < γ.l + WS + L`.)

*Loops* (A2). With `loop` every output is also an input. It is fed back before the next instance is output and before
the watermark is forwarded, first come first served, and counts as on time. It falls into the instance it came
from, too, on which f_O is then invoked again: an f_O that answers every time never ends.

Invariant: `_waiting` holds the instances on which f_O was never invoked, `_fired` the others; every output that is not
an update is at or after the last forwarded watermark.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

from cerite.core.errors import StreamError
from cerite.dataflow.event_time import DataflowError, Element, StreamTuple, Watermark, check_multiple
from cerite.dataflow.operators import Operator

# The two key-by functions that DEBS 2024, section 2.1, names: f_K° puts all tuples together, f_K* only equal ones.
#
# The paper hashes; here the key is the value itself, so that no two different tuples ever share one.

KeyFunction = Callable[[StreamTuple], Hashable]


def same_key(t: StreamTuple) -> Hashable:
    """f_K°: one key for all tuples."""
    return 0


def own_key(t: StreamTuple) -> Hashable:
    """f_K*: two tuples share a key exactly if they are equal, t₁.τ = t₂.τ and t₁.φ = t₂.φ.

    >>> own_key(StreamTuple(3, {"v": [1]})) == own_key(StreamTuple(3, {"v": [1.0]}))
    True
    >>> own_key(StreamTuple(3, {"v": 1})) == own_key(StreamTuple(3, {"v": True}))
    False
    """
    return t.time, _frozen(t.payload)


def _frozen(value: Any) -> Hashable:
    """The value in hashable form: numbers by value, but a truth value is not a number, and NaN equals NaN."""
    if isinstance(value, Mapping):
        return dict, frozenset((name, _frozen(each)) for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return list, tuple(map(_frozen, value))
    if isinstance(value, Set):
        return set, frozenset(map(_frozen, value))
    if isinstance(value, bool) or (isinstance(value, float) and math.isnan(value)):
        return type(value), str(value)
    try:
        hash(value)
    except TypeError:
        raise StreamError(
            f"payloads that hold {type(value).__name__} cannot be compared", hint="give a key function of your own"
        ) from None
    return value  # type: ignore[no-any-return]


# Γ(WA, WS, S, f_K, L): which window instances there are, and which of them a tuple falls into (section 2.1).
#
# An instance γ covers [ℓ·WA, ℓ·WA + WS) for one key. The paper counts ℓ from 0; here ℓ is any integer, because
# Listing 5 needs the instance that begins D_W before a tuple even where that is before time 0.


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
                f"{what} has the time {time}, not a multiple of δ = {self.delta}",
                hint="round times, or choose a smaller δ",
            )


@dataclass(slots=True)
class Instance:
    """γ: one window instance of one key."""

    key: Hashable  # γ.k
    left: int  # γ.l
    state: Any = None  # γ.φ
    fired: bool = field(default=False, repr=False)  # whether f_O was invoked on it


Update = Callable[[Instance, StreamTuple], None]
Output = Callable[[Instance], Iterable[Any]]
Queue = list[tuple[int, int, Instance]]  # a heap by γ.l, then by creation


class Aggregate(Operator):
    """A: tuples in, one set of output payloads per window instance out.

    >>> def add(instance, t):
    ...     instance.state = (instance.state or 0) + t.payload
    >>> sums = Aggregate(Windows(advance=5, size=5), add, lambda instance: [instance.state])
    >>> sums.run([StreamTuple(1, 10), StreamTuple(6, 7), StreamTuple(3, 20)], disorder=3, every=1)
    [StreamTuple(time=4, payload=30), StreamTuple(time=9, payload=7)]
    """

    def __init__(self, windows: Windows, update: Update, output: Output, *, loop: bool = False) -> None:
        self.windows = windows  # Γ
        self._update = update  # f_U
        self._output = output  # f_O
        self._loop = loop
        self._watermark: int | None = None  # W_A
        self._instances: dict[tuple[int, Hashable], Instance] = {}
        self._waiting: Queue = []
        self._fired: Queue = []
        self._created = count()
        self._late = 0

    @property
    def reach(self) -> int:
        """A tuple's last instance ends at most WS after it."""
        return self.windows.size

    @property
    def discarded(self) -> int:
        """How many tuples came too late for at least one of their instances."""
        return self._late

    def feed(self, element: Element) -> list[Element]:
        """A tuple is added to its instances; a watermark completes some."""
        return self._advance(element) if isinstance(element, Watermark) else self._take(element)

    def _take(self, t: StreamTuple) -> list[Element]:
        self.windows.check_time("a tuple", t.time)
        lefts = self.windows.lefts(t.time)
        remaining = [left for left in lefts if not self.windows.gone(left, self._watermark)]
        if len(remaining) < len(lefts):
            self._late += 1
        return self._settled(self._added(t, remaining))

    def _advance(self, watermark: Watermark) -> list[Element]:
        self.windows.check_time("a watermark", watermark.time)
        if self._watermark is not None and watermark.time <= self._watermark:
            if watermark.time < self._watermark:
                raise StreamError(
                    f"the watermark decreases from {self._watermark} to {watermark.time}",
                    hint="a watermark promises that nothing earlier comes; send it later",
                )
            return []
        self._watermark = watermark.time
        outputs = self._settled([])
        self._purge()
        return [*outputs, watermark]

    def _added(self, t: StreamTuple, lefts: Iterable[int]) -> list[StreamTuple]:
        """Add a tuple to its instances; the outputs of those that had been output before."""
        key = self.windows.key(t)
        again: list[StreamTuple] = []
        for left in lefts:
            instance = self._instance(left, key)
            self._update(instance, t)
            if instance.fired:
                again += self._outputs(instance)
        return again

    def _settled(self, outputs: list[StreamTuple]) -> list[Element]:
        """These outputs, those of all complete instances, and what the loop makes of them."""
        sent: list[Element] = []
        queue = deque(outputs)
        while True:
            while queue:
                t = queue.popleft()
                sent.append(t)
                if self._loop:
                    queue.extend(self._added(t, self.windows.lefts(t.time)))
            if not self._waiting or not self.windows.complete(self._waiting[0][0], self._watermark):
                return sent
            entry = heappop(self._waiting)
            heappush(self._fired, entry)
            entry[2].fired = True
            queue.extend(self._outputs(entry[2]))

    def _instance(self, left: int, key: Hashable) -> Instance:
        instance = self._instances.get((left, key))
        if instance is None:
            instance = self._instances[left, key] = Instance(key, left)
            heappush(self._waiting, (left, next(self._created), instance))
        return instance

    def _outputs(self, instance: Instance) -> list[StreamTuple]:
        time = self.windows.output_time(instance.left)
        return [StreamTuple(time, payload) for payload in self._output(instance)]

    def _purge(self) -> None:
        while self._fired and self.windows.gone(self._fired[0][0], self._watermark):
            left, _, instance = heappop(self._fired)
            del self._instances[left, instance.key]
