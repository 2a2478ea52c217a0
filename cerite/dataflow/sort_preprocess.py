"""S&P (DEBS 2024, section 3, Listing 3): sort by event time, and pre-process together what shares time and key.

One Aggregate with WA = WS = δ. Theorem 1: every group of tuples with one time and key is handed to f_P exactly once
and whole, and the outputs come in time order with the time of their group. Groups of the same time come in the order
in which their first tuples arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cerite.dataflow.aggregate import Aggregate, Instance, KeyFunction, Windows, own_key
from cerite.dataflow.event_time import StreamTuple

PreProcess = Callable[[list[StreamTuple]], Iterable[Any]]


def first_only(group: list[StreamTuple]) -> Iterable[Any]:
    """The f_P that, with f_K*, drops duplicates: one tuple stands for all that are equal."""
    return [group[0].payload]


def every_one(group: list[StreamTuple]) -> Iterable[Any]:
    """The f_P that only sorts."""
    return [t.payload for t in group]


def sort_preprocess(pre_process: PreProcess = first_only, *, key: KeyFunction = own_key, delta: int = 1) -> Aggregate:
    """S&P(S, f_P, f_K ← f_K*).

    >>> arrived = [StreamTuple(2, "b"), StreamTuple(1, "a"), StreamTuple(2, "b"), StreamTuple(2, "a")]
    >>> [(t.time, t.payload) for t in sort_preprocess().run(arrived, disorder=1, every=1)]
    [(1, 'a'), (2, 'b'), (2, 'a')]
    """

    def update(instance: Instance, t: StreamTuple) -> None:
        if instance.state is None:
            instance.state = []  # T
        instance.state.append(t)

    def output(instance: Instance) -> Iterable[Any]:
        return pre_process(instance.state)

    return Aggregate(Windows(delta, delta, key, delta=delta), update, output)
