"""T-CER (DEBS 2024, section 4, Listing 4): sequences of a known maximal duration, in overlapping chunks of time.

One Aggregate with WA ≤ WS − D + δ, so that every sequence P with max τ − min τ < D lies whole in some instance; of
those, the last reports it. Theorem 2: every sequence is reported exactly once. D is exclusive here as in the paper; for
a query's inclusive window ε it is ε + δ.

f_C sees the tuples of a chunk in the order in which they arrive: if that matters, it needs S&P before it. The
listing leaves it to f_C to find nothing longer than D; here the operator drops what is, as its definition says. It also
asks that P lie whole in the instance, which the listing takes for granted: f_C may then name as P all that its verdict
depends on, such as the time in which something must be absent, and not only the tuples it binds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from cerite.dataflow.aggregate import Aggregate, Instance, KeyFunction, Windows, same_key
from cerite.dataflow.event_time import DataflowError, StreamTuple, check_multiple


class Located(Protocol):
    """A payload φ that says where in time its sequence P lies, both ends inside."""

    @property
    def min_time(self) -> int:
        """min τ of P."""

    @property
    def max_time(self) -> int:
        """max τ of P."""


Condition = Callable[[Any, StreamTuple], tuple[Any, Iterable[Located]]]


@dataclass(slots=True)
class _Chunk:
    """γ.φ of Listing 4."""

    state: Any = None  # m
    output: list[Located] = field(default_factory=list)  # Φ_O


def t_cer(
    condition: Condition,
    duration: int,
    *,
    size: int | None = None,
    advance: int | None = None,
    key: KeyFunction = same_key,
    delta: int = 1,
) -> Aggregate:
    """T-CER(S, f_K ← f_K°, D, f_C), where `m, Φ ← f_C(m, t)` begins with m = None.

    Larger chunks (WS) repeat less work, smaller ones give more parallelism and report earlier.
    """
    ws, wa = chunks(duration, size, advance, delta)

    def whole(each: Located, left: int) -> bool:
        return left <= each.min_time and each.max_time < left + ws

    def update(instance: Instance, t: StreamTuple) -> None:
        if instance.state is None:
            instance.state = _Chunk()
        chunk: _Chunk = instance.state
        chunk.state, outputs = condition(chunk.state, t)
        for each in outputs:
            short = each.max_time - each.min_time < duration
            if short and whole(each, instance.left) and not whole(each, instance.left + wa):
                chunk.output.append(each)

    def output(instance: Instance) -> Iterable[Any]:
        chunk: _Chunk = instance.state
        return chunk.output

    return Aggregate(Windows(wa, ws, key, delta=delta), update, output)


def chunks(duration: int, size: int | None = None, advance: int | None = None, delta: int = 1) -> tuple[int, int]:
    """WS and WA for sequences shorter than D; what is not given is chosen (WA = D/2, WS = D + WA, as in Figure 1).

    >>> chunks(10)
    (15, 5)
    >>> chunks(10, size=100)
    (100, 91)
    """
    check_multiple("δ", delta, 1, least=1)
    check_multiple("the duration D", duration, delta, least=1)
    if advance is None:
        advance = max(delta, duration // (2 * delta) * delta) if size is None else size - duration + delta
    if size is None:
        size = duration + advance
    if size < duration:
        raise DataflowError(
            f"the window size WS = {size} is shorter than the duration D = {duration}",
            hint="a sequence of this duration would lie whole in no instance; use WS ≥ D",
        )
    if advance > size - duration + delta:
        raise DataflowError(
            f"the window advance WA = {advance} is too long: WS − D + δ is {size - duration + delta}",
            hint="some sequences would lie whole in no instance; use WA ≤ WS − D + δ",
        )
    return size, advance
