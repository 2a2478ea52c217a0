"""The examples of DEBS 2024, to be read beside the paper."""

from __future__ import annotations

from typing import Any

from cerite.dataflow import (
    Aggregate,
    Chain,
    Element,
    Filter,
    Instance,
    Map,
    StreamTuple,
    Watermark,
    Windows,
    every_one,
    merged,
    r_cer,
    sort_preprocess,
    t_cer,
)
from tests.dataflow.streams import outputs

W = Watermark


def T(time: int, payload: Any = None) -> StreamTuple:  # noqa: N802
    return StreamTuple(time, payload)


def collect(instance: Instance, t: StreamTuple) -> None:
    instance.state = [*(instance.state or []), t.payload]


def collected(instance: Instance) -> list[Any]:
    return ["".join(sorted(instance.state))]


# ---------------------------------------------------------------- section 2
def test_map_gives_zero_one_or_more_payloads_with_the_time_of_their_tuple() -> None:
    copies = Map(lambda t: [t.payload] * t.payload)
    assert list(copies.over([T(3, 2), T(4, 0), W(5), T(6, 1)])) == [T(3, 2), T(3, 2), W(5), T(6, 1)]


def test_filter_forwards_tuples_for_which_the_condition_holds() -> None:
    assert list(Filter(lambda t: t.payload > 1).over([T(3, 2), T(4, 0), W(5)])) == [T(3, 2), W(5)]


def test_listings_1_and_2_give_the_same_quartiles() -> None:
    def quartiles(values: list[int]) -> tuple[int, int]:
        return values[len(values) // 4], values[3 * len(values) // 4]

    def store(instance: Instance, t: StreamTuple) -> None:
        instance.state = [*(instance.state or []), t.payload]

    def update(instance: Instance, t: StreamTuple) -> None:
        values = sorted([*(instance.state[0] if instance.state else []), t.payload])
        instance.state = values, quartiles(values)

    windows = Windows(advance=5, size=10)
    on_output = Aggregate(windows, store, lambda instance: [quartiles(sorted(instance.state))])
    on_update = Aggregate(windows, update, lambda instance: [instance.state[1]])
    stream: list[Element] = [T(1, 7), T(3, 1), T(8, 4), W(5), T(6, 9), W(12), T(12, 2), W(30)]
    results = outputs(on_output.over(stream))
    assert results == outputs(on_update.over(stream))
    assert results == [T(4, (1, 7)), T(9, (4, 9)), T(14, (2, 9)), T(19, (2, 2))]


def test_sliding_windows_share_tuples_and_tumbling_windows_do_not() -> None:
    stream: list[Element] = [T(0, "a"), T(2, "b"), T(5, "c"), W(20)]
    tumbling = Aggregate(Windows(advance=3, size=3), collect, collected)
    sliding = Aggregate(Windows(advance=3, size=6), collect, collected)
    assert list(tumbling.over(stream)) == [T(2, "ab"), T(5, "c"), W(20)]
    assert list(sliding.over(stream)) == [T(2, "ab"), T(5, "abc"), T(8, "c"), W(20)]


def test_keys_have_instances_of_their_own() -> None:
    upper = Aggregate(Windows(5, 5, key=lambda t: t.payload.isupper()), collect, collected)
    assert list(upper.over([T(1, "a"), T(2, "B"), T(3, "c"), W(5)])) == [T(4, "ac"), T(4, "B"), W(5)]


def test_definition_1_output_waits_for_the_watermark_and_precedes_it() -> None:
    aggregate = Aggregate(Windows(2, 2), collect, collected)
    assert aggregate.feed(T(3, "b")) == []
    assert aggregate.feed(T(0, "a")) == []
    assert aggregate.feed(W(2)) == [T(1, "a"), W(2)]
    assert aggregate.feed(W(3)) == [W(3)]
    assert aggregate.feed(T(3, "c")) == []
    assert aggregate.feed(W(4)) == [T(3, "bc"), W(4)]


def test_a_late_tuple_within_the_allowed_lateness_updates_the_output() -> None:
    aggregate = Aggregate(Windows(5, 5, lateness=3), collect, collected)
    stream: list[Element] = [T(1, "a"), W(5), T(2, "b"), W(7), T(3, "c"), W(8), T(4, "d"), W(20)]
    assert list(aggregate.over(stream)) == [T(4, "a"), W(5), T(4, "ab"), W(7), T(4, "abc"), W(8), W(20)]
    assert aggregate.discarded == 1


def test_a_late_tuple_may_open_an_instance_that_is_output_at_once() -> None:
    aggregate = Aggregate(Windows(5, 5, lateness=3), collect, collected)
    assert list(aggregate.over([W(6), T(1, "a"), T(2, "b")])) == [W(6), T(4, "a"), T(4, "ab")]


def test_without_lateness_late_tuples_still_enter_the_instances_that_are_open() -> None:
    aggregate = Aggregate(Windows(advance=3, size=6), collect, collected)
    assert list(aggregate.over([W(7), T(4, "a"), W(9), W(12)])) == [W(7), T(8, "a"), W(9), W(12)]
    assert aggregate.discarded == 1, "the instance [0, 6) had been output before"


def test_merged_streams_have_the_smallest_watermark_of_all() -> None:
    one: list[Element] = [T(1), W(2), W(8), T(9), W(12)]
    two: list[Element] = [T(0), T(3), W(4), W(10)]
    expected: list[Element] = [T(1), T(0), T(3), W(4), T(9), W(8), W(10), W(12)]
    assert list(merged(one, two)) == expected


def test_a2_an_output_loops_back_into_the_instances_it_falls_into() -> None:
    """Like Figure 2: every instance hands what it has counted to the next one, until there is nothing more to say."""

    def update(instance: Instance, t: StreamTuple) -> None:
        instance.state = t.payload

    def output(instance: Instance) -> list[int]:
        count: int = instance.state
        own_output = count > instance.left
        return [] if own_output or count >= 4 else [count + 1]

    looping = Aggregate(Windows(advance=1, size=2), update, output, loop=True)
    assert list(looping.over([T(0, 0), W(10)])) == [T(1, 1), T(2, 2), T(3, 3), T(4, 4), W(10)]


# ---------------------------------------------------------------- section 3
def test_s_and_p_sorts_and_removes_duplicate_notifications() -> None:
    seen: list[Element] = [
        T(2, {"door": 1}),
        T(1, {"door": 7}),
        T(2, {"door": 1}),
        T(2, {"door": 2}),
        W(3),
        T(1, {"door": 9}),
        W(9),
    ]
    operator = sort_preprocess()
    assert outputs(operator.over(seen)) == [T(1, {"door": 7}), T(2, {"door": 1}), T(2, {"door": 2})]
    assert operator.discarded == 1, "door 9 came after the watermark"


def test_s_and_p_pre_processes_what_shares_time_and_key() -> None:
    means = sort_preprocess(lambda group: [sum(t.payload for t in group) / len(group)], key=lambda t: t.payload > 10)
    assert outputs(means.over([T(4, 1), T(4, 3), T(4, 20), T(3, 5), W(5)])) == [T(3, 5.0), T(4, 2.0), T(4, 20.0)]


def test_s_and_p_only_sorts_if_asked_to() -> None:
    sort = sort_preprocess(every_one)
    assert [t.payload for t in outputs(sort.over([T(2, "b"), T(2, "b"), T(1, "a"), W(3)]))] == ["a", "b", "b"]


# ---------------------------------------------------------------- section 4
class Pair:
    """Two tuples that make a sequence P."""

    def __init__(self, one: StreamTuple, two: StreamTuple) -> None:
        self.min_time, self.max_time = sorted((one.time, two.time))


def pairs(seen: list[StreamTuple] | None, t: StreamTuple) -> tuple[list[StreamTuple], list[Pair]]:
    """f_C: every two tuples are a sequence."""
    before = seen or []
    return [*before, t], [Pair(each, t) for each in before]


def test_figure_1_a_sequence_lies_in_one_to_three_instances_and_is_reported_once() -> None:
    windows = Windows(advance=2, size=6)  # WA = D/2, WS = 1.5 D, for D = 4
    lengths = set()
    for begin in range(100, 112):
        for end in range(begin, begin + 4):
            stream: list[Element] = [T(begin), T(end), W(200)]
            lengths.add(len(set(windows.lefts(begin)) & set(windows.lefts(end))))
            results = outputs(t_cer(pairs, 4, size=6, advance=2).over(stream))
            assert [(t.payload.min_time, t.payload.max_time) for t in results] == [(begin, end)]
    assert lengths == {1, 2, 3}


def test_t_cer_reports_nothing_as_long_as_its_duration() -> None:
    assert t_cer(pairs, 4, size=100).run([T(0), T(4)], disorder=0, every=1) == []
    assert len(t_cer(pairs, 5, size=100).run([T(0), T(4)], disorder=0, every=1)) == 1


# ---------------------------------------------------------------- section 5
def test_r_cer_forwards_only_what_comes_after_a_criterion_was_met() -> None:
    def after_start(started: bool | None, t: StreamTuple) -> tuple[bool, list[Any]]:
        return bool(started) or t.payload == "start", [t.payload] if started else []

    stream: list[Element] = [T(5, "d"), T(1, "a"), T(3, "start"), T(4, "c"), W(3), W(5), W(7)]
    assert outputs(r_cer(after_start, distance=2).over(stream)) == [T(4, "c"), T(5, "d")]


def test_r_cer_forwards_only_what_comes_before_a_criterion_was_met() -> None:
    def until_stop(stopped: bool | None, t: StreamTuple) -> tuple[bool, list[Any]]:
        now = bool(stopped) or t.payload == "stop"
        return now, [] if now else [t.payload]

    stream: list[Element] = [T(2, "b"), T(3, "stop"), T(1, "a"), T(4, "c"), W(3), W(5)]
    assert outputs(r_cer(until_stop, distance=2).over(stream)) == [T(1, "a"), T(2, "b")]


def test_figure_3_every_later_instance_waits_for_the_state_of_the_one_before() -> None:
    """With D_W = 3 and t₀ at 10, the instances that end after 10, 11, 12 and so on give one output each, in order."""
    chain = r_cer(lambda count, t: ((count or 0) + 1, [t.payload]), distance=3)
    upstream = Chain(*chain.stages[:-1])  # all but M₂
    stream: list[Element] = [T(10, "t0"), T(11, "t1"), W(11), W(14), T(16, "t2"), W(17)]
    results = [(t.time, t.payload.payload, t.payload.state) for t in outputs(upstream.over(stream))]
    assert results == [
        (10, ["t0"], 1), (11, ["t1"], 2), (12, [], 2), (13, [], 2), (14, [], 2), (15, [], 2), (16, ["t2"], 3),
    ]  # fmt: skip


def test_r_cer_breaks_ties_with_its_order() -> None:
    def spell(text: str | None, t: StreamTuple) -> tuple[str, list[str]]:
        return (text or "") + t.payload, [(text or "") + t.payload]

    stream: list[Element] = [T(2, "y"), T(2, "x"), T(1, "z"), W(3)]
    assert [t.payload for t in outputs(r_cer(spell, 2).over(stream))] == ["z", "zy", "zyx"]
    assert [t.payload for t in outputs(r_cer(spell, 2, ties=lambda t: t.payload).over(stream))] == ["z", "zx", "zxy"]


def test_a_late_tuple_does_not_keep_r_cer_from_later_ones() -> None:
    operator = r_cer(lambda count, t: ((count or 0) + 1, [t.payload]), distance=3)
    assert outputs(operator.over([W(5), T(4, "late"), T(5, "first"), W(6)])) == [T(5, "first")]
    assert operator.discarded == 1
