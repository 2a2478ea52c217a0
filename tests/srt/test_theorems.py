"""One random test per theorem of the SRT report, named after it.

The oracle is the judge's `string_matches` (definition 18) on every stretch of a short stream; where a theorem is
about languages, a string is in one if it has a match.
"""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from cerite.core.errors import PatternError
from cerite.pattern import Complement, Intersection, Pattern, Size, Window
from cerite.reference.semantics import Stream, matches
from cerite.reference.semantics import string_matches as judged
from cerite.reference.srt import (
    Transducer,
    accepts,
    build,
    complement,
    concat,
    detected,
    determinise,
    eliminate_epsilon,
    from_empty,
    is_deterministic,
    is_unrolled,
    longest_run,
    product,
    runs,
    star,
    streaming,
    string_matches,
    union,
    unroll,
    unrolled_window,
    windowed,
)
from tests.properties.agreement import cases
from tests.srt.expressions import Rows, acyclic, enclosed, extended, marked_ends, sremo, streams, substrings
from tests.telling import Share, often

Matches = set[frozenset[int]]
widths = st.integers(1, 4)


def built(pattern: Pattern) -> Transducer:
    """The transducer; what is refused, with the advice of `test_refusals`, is not tried."""
    try:
        return build(pattern)
    except PatternError:
        assume(False)
        raise


@often(600)
@given(sremo(), streams())
def test_theorem_27_match_of_expression_is_match_of_transducer(e: Pattern, rows: Rows) -> None:
    t = build(e)
    for string in substrings(rows):
        assert string_matches(t, string) == judged(e, string)


@cases(often(800), extended(), streams(), least=1 / 5)
def test_theorem_27_with_the_operators_of_section_5(share: Share, e: Pattern, rows: Rows) -> None:
    t, some = built(e), False
    for string in substrings(rows):
        expected = judged(e, string)
        assert string_matches(t, string) == expected
        some = some or any(expected)
    share.note(some)


@often(500)
@given(extended(), streams())
def test_lemma_29_epsilon_elimination(e: Pattern, rows: Rows) -> None:
    t = built(e)
    plain = eliminate_epsilon(t)
    assert not plain.has_epsilon
    for string in substrings(rows):
        assert string_matches(plain, string) == string_matches(t, string)


@often(300)
@given(sremo(3), sremo(3), streams())
def test_theorem_31_closure_under_union(one: Pattern, two: Pattern, rows: Rows) -> None:
    t = union(build(one), build(two))
    for string in substrings(rows):
        assert string_matches(t, string) == judged(one, string) | judged(two, string)


@often(300)
@given(sremo(3), sremo(3), streams())
def test_theorem_31_closure_under_concatenation(one: Pattern, two: Pattern, rows: Rows) -> None:
    t = concat(build(one), from_empty(build(two)))
    for string in substrings(rows):
        expected = {m | n for s, rest in splits(string) for m in judged(one, s) for n in judged(two, rest)}
        assert string_matches(t, string) == expected


@often(300)
@given(sremo(3), streams())
def test_theorem_31_closure_under_star(e: Pattern, rows: Rows) -> None:
    t = star(from_empty(build(e)))

    def repeated(string: Stream) -> Matches:
        if not string.events:
            return {frozenset()}
        return {m | n for s, rest in splits(string) if s.events for m in judged(e, s) for n in repeated(rest)}

    for string in substrings(rows):
        assert string_matches(t, string) == repeated(string)


@often(300)
@given(sremo(3), sremo(3), streams())
def test_theorem_34_closure_under_intersection(one: Pattern, two: Pattern, rows: Rows) -> None:
    t = product(from_empty(build(one)), from_empty(build(two)))
    for string in substrings(rows):
        assert string_matches(t, string) == judged(one, string) & judged(two, string)
        assert string_matches(t, string) == judged(Intersection((one, two)), string)


@often(500)
@given(enclosed(), streams())
def test_theorem_34_and_corollary_43_inside_an_expression(e: Pattern, rows: Rows) -> None:
    t = built(e)
    for string in substrings(rows):
        assert string_matches(t, string) == judged(e, string)


@often(300)
@given(extended(4), streams())
def test_definition_32_streaming_matches_are_those_of_all_stretches(e: Pattern, rows: Rows) -> None:
    t = streaming(built(e))
    events = Stream.of(rows).events
    for end in range(len(events) + 1):
        expected: Matches = set().union(*(judged(e, Stream(events[low:end])) for low in range(end + 1)))
        assert string_matches(t, Stream(events[:end])) == expected


@often(300)
@given(extended(4), streams())
def test_definition_24_detects_what_the_judge_reports(e: Pattern, rows: Rows) -> None:
    stream = Stream.of(rows)
    expected = {frozenset(match.positions) for match in matches(e, stream, semantics="complex-events")}
    assert detected(built(e), stream) == expected


@often(300)
@given(sremo(), streams(), widths)
def test_definition_39_a_window_counts_from_the_first_to_the_last_mark(e: Pattern, rows: Rows, width: int) -> None:
    t = windowed(build(e), width)
    for string in substrings(rows):
        inside = {m for m in judged(e, string) if not m or max(m) - min(m) + 1 <= width}
        assert string_matches(t, string) == inside == judged(Window(e, Size.events(width)), string)


@often(250)
@given(marked_ends(), streams(), widths)
def test_lemma_46_unrolled_is_windowed(e: Pattern, rows: Rows, width: int) -> None:
    t = unrolled_window(build(e), width)
    assert is_unrolled(t)
    for string in substrings(rows):
        assert string_matches(t, string) == judged(Window(e, Size.events(width)), string)


@often(250)
@given(sremo(), streams(), st.integers(0, 4))
def test_algorithm_4_unrolls_the_runs_up_to_a_length(e: Pattern, rows: Rows, length: int) -> None:
    t = unroll(build(e), length)
    assert is_unrolled(t)
    for string in substrings(rows):
        assert string_matches(t, string) == (judged(e, string) if len(string.events) <= length else set())


@often(200)
@given(marked_ends(), streams(), st.integers(1, 3))
def test_theorem_41_determinised_windowed_expressions_have_the_same_language(
    e: Pattern, rows: Rows, width: int
) -> None:
    t = determinise(unrolled_window(build(e), width))
    assert is_deterministic(t)
    for string in substrings(rows):
        assert len(list(runs(t, string))) == 1  # complete, too
        assert accepts(t, string) == bool(judged(Window(e, Size.events(width)), string))


@often(250)
@given(sremo(3) | acyclic(), streams())
def test_theorem_41_what_reads_nothing_it_stored_or_ends_is_determinised_as_it_is(e: Pattern, rows: Rows) -> None:
    t = build(e)
    plain = eliminate_epsilon(t).trim()
    assume(not plain.read & plain.written or longest_run(plain) is not None)
    whole = determinise(t)
    assert is_deterministic(whole)
    for string in substrings(rows):
        assert len(list(runs(whole, string))) == 1
        assert accepts(whole, string) == bool(judged(e, string))


@often(200)
@given(marked_ends(), streams(), st.integers(1, 3))
def test_corollary_43_complement_of_windowed_expressions(e: Pattern, rows: Rows, width: int) -> None:
    windowed_e = Window(e, Size.events(width))
    t = complement(unrolled_window(build(e), width))
    same = build(Complement(windowed_e))
    for string in substrings(rows):
        expected = judged(Complement(windowed_e), string)
        assert string_matches(t, string) == string_matches(same, string) == expected
        assert bool(expected) != accepts(build(windowed_e), string)


def splits(string: Stream) -> list[tuple[Stream, Stream]]:
    """S = S1 · S2, in every way."""
    events = string.events
    return [(Stream(events[:at]), Stream(events[at:])) for at in range(len(events) + 1)]
