"""The theorems of DEBS 2024 as random tests: keys, disorder within the watermark, any δ, windows of any fitting size.

The oracles are plain Python: groups, combinations and folds over all tuples at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cerite.dataflow import (
    Aggregate,
    Chain,
    Instance,
    StreamTuple,
    Watermark,
    Windows,
    r_cer,
    sort_preprocess,
    t_cer,
)
from tests.dataflow.streams import Fed, fed, key_of, outputs

PLENTY = 40  # steps after the last tuple: more than any window here


def grouped(tuples: Iterable[StreamTuple], by: Any) -> dict[Any, list[StreamTuple]]:
    groups: dict[Any, list[StreamTuple]] = {}
    for t in tuples:
        groups.setdefault(by(t), []).append(t)
    return groups


def store(instance: Instance, t: StreamTuple) -> None:
    instance.state = [*(instance.state or []), t]


# ---------------------------------------------------------------- section 2: the Aggregate itself
@settings(max_examples=150, deadline=None)
@given(fed(PLENTY), st.integers(1, 4), st.integers(0, 6))
def test_oracle_aggregate_outputs_every_instance_once_and_whole(stream: Fed, advance: int, overlap: int) -> None:
    delta, size = stream.delta, (advance + overlap) * stream.delta
    windows = Windows(advance * delta, size, key_of, delta=delta)
    operator = Aggregate(windows, store, lambda instance: [(instance.left, instance.key, instance.state)])
    actual = outputs(operator.over(stream.elements))

    lefts = range(-100 * delta * advance, 100 * delta * advance, delta * advance)
    expected = {
        (left, key): [t for t in stream.arrived if left <= t.time < left + size and key_of(t) == key]
        for left in lefts
        for key in "ab"
    }
    assert {t.payload[:2]: t.payload[2] for t in actual} == {each: fell for each, fell in expected.items() if fell}
    assert len(actual) == sum(map(bool, expected.values()))
    assert [t.time for t in actual] == [t.payload[0] + size - delta for t in actual]
    assert [t.time for t in actual] == sorted(t.time for t in actual)
    assert operator.discarded == 0


@settings(max_examples=150, deadline=None)
@given(fed(PLENTY), st.integers(1, 3), st.integers(0, 3), st.integers(0, 5), st.integers(0, 6))
def test_oracle_allowed_lateness(stream: Fed, advance: int, overlap: int, lateness: int, hurry: int) -> None:
    """Watermarks that promise too much: an instance's last output has every tuple that came before W ≥ γ.l + WS + L."""
    delta = stream.delta
    size, limit = (advance + overlap) * delta, lateness * delta
    windows = Windows(advance * delta, size, lateness=limit, delta=delta)
    operator = Aggregate(windows, store, lambda instance: [(instance.left, list(instance.state))])
    by_left: dict[int, list[StreamTuple]] = {}
    last: dict[int, list[StreamTuple]] = {}
    lost: set[StreamTuple] = set()
    reached: int | None = None
    for element in stream.elements:
        if isinstance(element, Watermark):
            element = Watermark(element.time + hurry * delta)
            reached = element.time
        for left in windows.lefts(element.time) if isinstance(element, StreamTuple) else ():
            assert isinstance(element, StreamTuple)
            if reached is None or reached < left + size + limit:
                by_left.setdefault(left, []).append(element)
            else:
                lost.add(element)
        for out in operator.feed(element):
            if isinstance(out, StreamTuple):
                last[out.payload[0]] = out.payload[1]
    assert last == by_left
    assert operator.discarded == len(lost)


# ---------------------------------------------------------------- theorem 1
@settings(max_examples=150, deadline=None)
@given(fed(), st.booleans())
def test_theorem_1_sort_and_preprocess(stream: Fed, by_key: bool) -> None:
    """f_P sees every group of one time and key once, whole; outputs come in time order with their group's time."""

    def whole(group: list[StreamTuple]) -> Iterable[Any]:
        return [group, len(group)]

    def own(t: StreamTuple) -> Any:
        return t.payload.value

    key = key_of if by_key else own
    operator = sort_preprocess(whole, key=key, delta=stream.delta)
    groups = grouped(stream.arrived, lambda t: (t.time, key(t)))
    ordered = sorted(groups.items(), key=lambda item: item[0][0])  # stable: ties as they arrived
    expected = [StreamTuple(time, each) for (time, _), group in ordered for each in whole(group)]
    assert outputs(operator.over(stream.elements)) == expected


@settings(max_examples=150, deadline=None)
@given(fed(), st.integers(1, 3))
def test_theorem_1_duplicates_are_removed_whatever_their_number(stream: Fed, copies: int) -> None:
    twice = [each for element in stream.elements for each in [element] * copies]
    once = sort_preprocess(delta=stream.delta)
    expected = sorted(stream.arrived, key=lambda t: t.time)
    assert outputs(once.over(twice)) == expected


# ---------------------------------------------------------------- theorem 2
@dataclass(frozen=True)
class Accepted:
    """φ of a sequence P: up to three tuples."""

    members: frozenset[StreamTuple]

    @property
    def min_time(self) -> int:
        return min(t.time for t in self.members)

    @property
    def max_time(self) -> int:
        return max(t.time for t in self.members)


def holds(members: Iterable[StreamTuple]) -> bool:
    return bool(sum(t.payload.value for t in members) % 3 == 0)


def accepted_sets(seen: list[StreamTuple] | None, t: StreamTuple) -> tuple[list[StreamTuple], list[Accepted]]:
    """f_C: sets of at most three tuples that `holds` accepts, when the last of them arrives."""
    before = seen or []
    sets = [frozenset([t, *others]) for size in range(3) for others in combinations(before, size)]
    return [*before, t], [Accepted(each) for each in sets if holds(each)]


@settings(max_examples=150, deadline=None)
@given(fed(PLENTY), st.integers(1, 6), st.integers(0, 6), st.data())
def test_theorem_2_t_cer_reports_every_sequence_exactly_once(
    stream: Fed, duration: int, longer: int, data: st.DataObject
) -> None:
    """Any WS ≥ D and any WA ≤ WS − D + δ, straight from the disordered stream."""
    advance = data.draw(st.integers(1, longer + 1), label="WA")
    delta, length = stream.delta, duration * stream.delta
    operator = t_cer(
        accepted_sets, length, size=length + longer * delta, advance=advance * delta, key=key_of, delta=delta
    )
    actual = Counter(t.payload.members for t in outputs(operator.over(stream.elements)))
    expected = {
        frozenset(members)
        for group in grouped(stream.arrived, key_of).values()
        for size in (1, 2, 3)
        for members in combinations(group, size)
        if holds(members) and max(t.time for t in members) - min(t.time for t in members) < length
    }
    assert actual == Counter(expected)


# ---------------------------------------------------------------- theorems 3 and 4
def spelled(state: int | None, t: StreamTuple) -> tuple[int, list[Any]]:
    """f_M whose state tells the whole past in order; some tuples give no output, some two."""
    number = (state or 0) * 31 + t.payload.number + 1
    return number, [(t.payload.key, number)] * (t.payload.value % 3)


def by_value(t: StreamTuple) -> int:
    value: int = t.payload.value
    return value


@settings(max_examples=150, deadline=None)
@given(fed(), st.booleans(), st.booleans())
def test_theorem_3_r_cer_is_a_plain_fold_in_event_time_order(stream: Fed, keyed: bool, tied: bool) -> None:
    options: dict[str, Any] = {"key": key_of} if keyed else {}
    options |= {"ties": by_value} if tied else {}
    operator = r_cer(spelled, stream.distance, delta=stream.delta, **options)
    actual = outputs(operator.over(stream.elements))

    expected: list[StreamTuple] = []
    for group in grouped(stream.arrived, key_of if keyed else lambda t: 0).values():
        state = None
        for t in sorted(group, key=lambda t: (t.time, by_value(t) if tied else 0)):
            state, payloads = spelled(state, t)
            expected += [StreamTuple(t.time, payload) for payload in payloads]
    assert Counter(actual) == Counter(expected)
    for key in "ab":  # and the outputs of a key are in order
        mine = [t for t in actual if t.payload[0] == key] if keyed else actual
        assert mine == [t for t in expected if not keyed or t.payload[0] == key]
    assert operator.discarded == 0


@settings(max_examples=150, deadline=None)
@given(fed(tail=5))
def test_theorem_4_the_ith_output_of_a_key_comes_from_its_ith_instance(stream: Fed) -> None:
    """From the instance of the key's earliest tuple on, one output per step of δ, up to the watermark."""
    operator = r_cer(spelled, stream.distance, key=key_of, delta=stream.delta)
    upstream = Chain(*operator.stages[:-1])  # what A sends before M₂ unwraps it
    times = grouped(outputs(upstream.over(stream.elements)), lambda t: t.payload.key)
    last = max((element.time for element in stream.elements), default=0)
    for key, group in grouped(stream.arrived, key_of).items():
        earliest = min(t.time for t in group)
        assert [t.time for t in times[key]] == list(range(earliest, last, stream.delta))
    assert times.keys() == grouped(stream.arrived, key_of).keys()
