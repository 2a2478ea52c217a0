"""Where the report's algorithms and its definitions disagree: the definition decides, and the judge agrees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cerite.core.errors import PatternError
from cerite.language.sremo import parse_sremo
from cerite.reference.semantics import Stream
from cerite.reference.semantics import string_matches as judged
from cerite.reference.srt import (
    Transducer,
    accepts,
    build,
    complement,
    concat,
    detected,
    eliminate_epsilon,
    from_empty,
    product,
    star,
    string_matches,
    unroll,
    unrolled_window,
)


def string(text: str) -> Stream:
    """`A1 B2`: events of a type and an id."""
    return Stream.of({"type": each[0], "id": int(each[1:])} for each in text.split())


def agreed(expression: str, events: str) -> set[frozenset[int]]:
    """What the judge and the transducer both say."""
    pattern = parse_sremo(expression)
    plain = eliminate_epsilon(build(pattern))
    expected = judged(pattern, string(events))
    assert string_matches(plain, string(events)) == string_matches(build(pattern), string(events)) == expected
    return expected


def everything(length: int) -> set[frozenset[int]]:
    return {frozenset(range(length))}


def test_algorithm_2_must_not_gather_write_registers_of_different_transitions() -> None:
    """The second event goes to s in one branch and to r in the other, and the third reads what was in r before."""
    expression = "A^o>r . (A^o>s . B[id = r.id]^o + A^o>r . C[id = r.id]^o)"
    assert agreed(expression, "A1 A2 B1") == everything(3)
    assert agreed(expression, "A1 A2 B2") == set()
    assert agreed(expression, "A1 A2 C2") == everything(3)


def test_theorem_34_pairs_only_transitions_of_equal_output() -> None:
    """A.4 prints ⊗ for a pair of • and ⊗, which would report {1}: a match of one side only."""
    assert agreed("(A^o . B^o) & (A^x . B^o)", "A1 B1") == set()


def test_theorem_34_the_sides_do_not_read_each_other() -> None:
    """With one register for both sides, the left side would compare C with what the right side stored."""
    expression = "(A^o>r . true^o . C[id = r.id]^o) & (true^o . B^o>r . C[id = r.id]^o)"
    assert agreed(expression, "A1 B1 C1") == everything(3)
    assert agreed(expression, "A1 B2 C2") == set()
    assert agreed(expression, "A1 B2 C1") == set()


def test_theorem_34_what_follows_reads_the_latest_of_both_sides() -> None:
    right_last = "((A^o>r . true^o . B[id = r.id]^o) & (true^o . true^o>r . true^o)) . C[id = r.id]^o"
    assert agreed(right_last, "A1 A2 B1 C2") == everything(4)
    assert agreed(right_last, "A1 A2 B1 C1") == set()
    left_last = "((true^o . A^o>r . B[id = r.id]^o) & (true^o>r . true^o . true^o)) . C[id = r.id]^o"
    assert agreed(left_last, "A2 A1 B1 C1") == everything(4)
    assert agreed(left_last, "A2 A1 B1 C2") == set()


def test_theorem_34_inside_an_expression_needs_registers_of_their_own_or_written_first() -> None:
    with pytest.raises(PatternError, match="may read `r` before writing it") as refused:
        build(parse_sremo("A^o>r . ((true^o . B[id = r.id]^o) & (true^o>r . B^o))"))
    assert refused.value.span is not None
    assert "different names" in (refused.value.hint or "")
    assert agreed("A^o>r . ((true^o . B[id = r.id]^o) & (true^o>s . B[id = s.id]^o))", "A1 A1 B1") == everything(3)


def test_theorem_31_repetitions_of_transducers_start_with_empty_registers() -> None:
    """Figure 11f hands the registers on: right for e* (definition 17), wrong for T* (definition 30)."""
    pattern = parse_sremo("A^o>r + B[id = r.id]^o")
    t = build(pattern)
    assert not accepts(t, string("B1"))
    assert accepts(star(t), string("A1 B1"))
    assert agreed("(A^o>r + B[id = r.id]^o)*", "A1 B1") == everything(2)
    assert not accepts(star(from_empty(t)), string("A1 B1"))
    assert not accepts(concat(t, from_empty(t)), string("A1 B1"))
    assert accepts(star(from_empty(t)), string("A1 A2"))


def test_definition_24_a_string_may_end_unmarked_a_detected_match_may_not() -> None:
    assert agreed("A^o . B^x", "A1 B1") == {frozenset((0,))}
    assert detected(build(parse_sremo("A^o . B^x")), string("A1 B1")) == set()
    assert detected(build(parse_sremo("A^x . B^o")), string("A1 B1")) == {frozenset((1,))}


def test_lemma_46_a_window_does_not_bound_what_is_not_marked() -> None:
    """Definition 39 counts from the first to the last mark; unrolling to the window's length would lose this match."""
    expression = "((true^x)* . A^o)[1..1]"
    assert agreed(expression, "B1 B1 B1 A1") == {frozenset((3,))}
    t = build(parse_sremo("(true^x)* . A^o"))
    assert string_matches(unroll(t, 1), string("B1 B1 B1 A1")) == set()
    with pytest.raises(PatternError, match="does not bound this expression") as refused:
        unrolled_window(t, 1)
    assert "mark the first and the last event" in (refused.value.hint or "")


def test_theorem_41_fails_for_a_window_around_unmarked_memory() -> None:
    """The window is 1 and yet every A would have to be remembered: refused, not wrongly determinised."""
    inner = "((true^x)* . A^x>r . (true^x)* . B[id = r.id]^o)[1..1]"
    assert agreed(inner, "A1 A2 B1") == {frozenset((2,))}
    with pytest.raises(PatternError, match="has no deterministic form"):
        build(parse_sremo(f"!({inner})"))


def test_algorithm_8_makes_the_dead_state_final() -> None:
    assert agreed("!(A^o)", "A1") == set()
    for events in ("", "B1", "B1 B1", "A1 A1 A1"):
        assert agreed("!(A^o)", events) == {frozenset()}


def test_corollary_43_between_two_marks_a_window_bounds_the_complement() -> None:
    """No window of its own, but what lies between A and C is at most two events long."""
    expression = "(A^o . !((true^x)* . B^x>r . (true^x)* . B[id = r.id]^x . (true^x)*) . C^o)[1..4]"
    assert agreed(expression, "A1 B1 B2 C1") == {frozenset((0, 3))}
    assert agreed(expression, "A1 B1 B1 C1") == set()
    assert agreed(expression, "A1 B1 B2 B3 C1") == set()
    for unbounded in ("(!(E) . C^o)[1..4]", "(A^o . !(E))[1..4]", "((A^o)* . !(E) . C^o)[1..4]", "A^o . !(E) . C^o"):
        with pytest.raises(PatternError, match="has loops"):
            build(parse_sremo(unbounded.replace("E", "(true^x)* . B^x>r . (true^x)* . B[id = r.id]^x")))


def test_corollary_43_a_complement_inside_a_complement_has_the_same_bound() -> None:
    twice = "(A^o . !(!((true^x)* . B^x>r . (true^x)* . B[id = r.id]^x)) . C^o)[1..4]"
    assert agreed(twice, "A1 B1 B1 C1") == {frozenset((0, 3))}
    assert agreed(twice, "A1 B1 B2 C1") == set()
    with pytest.raises(PatternError, match="has loops"):  # marks inside a complement bound nothing outside it
        build(parse_sremo("(!(A^o . !((true^x)* . B^x>r . (true^x)* . B[id = r.id]^x) . A^o) . C^o)[1..4]"))


def test_corollary_43_marks_inside_a_complement_do_not_close_a_window_around_it() -> None:
    """What the inner complement reads is bounded by A and C, not by B and the mark inside the outer complement."""
    pair = "(true^x)* . B^x>r . (true^x)* . B[id = r.id]^x"
    expression = f"(A^o . ((B^o . !(!({pair}) . true^o))[1..4]) . C^o)[1..7]"
    assert agreed(expression, "A1 B9 B1 A1 B1 A1 C1") == {frozenset((0, 1, 6))}
    assert agreed(expression, "A1 B9 B1 A1 B2 A1 C1") == set()


def test_algorithm_6_reads_the_last_appearance_of_a_register() -> None:
    t = unroll(build(parse_sremo("A^o>r . (B[id != r.id]^o>r)* . C[id = r.id]^o")), 5)
    assert t.written == {"t1", "t2", "t3", "t4"}
    for events in ("A1 C1", "A1 B2 C2", "A1 B2 B1 C1", "A1 B2 B3 B4 C4"):
        assert accepts(t, string(events)), events
    for events in ("A1 C2", "A1 B2 C1", "A1 B2 B2 C2", "A1 B2 B3 B4 C3", "A1 B2 B3 B4 C2", "A1 B2 B3 B4 C1"):
        assert not accepts(t, string(events)), events


def test_a_complement_reads_registers_from_before_and_leaves_them_alone() -> None:
    expression = "A^o>r . !(B^o>r . B[id = r.id]^o) . C[id = r.id]^o"
    assert agreed(expression, "A1 B2 B2 C1") == set()
    assert agreed(expression, "A1 B2 B3 C1") == {frozenset((0, 3))}
    assert agreed(expression, "A1 B2 B3 C3") == set()
    outer = "A^o>r . !(B[id = r.id]^o) . C^o"
    assert agreed(outer, "A1 B1 C1") == set()
    assert agreed(outer, "A1 B2 C1") == {frozenset((0, 2))}


def test_negation_of_a_test_of_an_empty_register_holds() -> None:
    """A condition on an empty register is false as a whole, also `NOT (id = r.id)`; its complement is true."""
    assert agreed("B[NOT (id = r.id)]^o", "B1") == set()
    assert agreed("true^o & !(B[NOT (id = r.id)]^o)", "B1") == set()
    assert agreed("(true^x & !(B[id = r.id]^o)) . A^o", "B1 A1") == {frozenset((1,))}


def test_registers_of_the_same_name_in_two_complements_side_by_side_stay_apart() -> None:
    """Both sides unroll to registers t1, t2: the product must keep them apart."""
    one = complement(build(parse_sremo("A^o>r . true^o . true^o . B[id = r.id]^o")))
    two = complement(build(parse_sremo("true^o . A^o>r . true^o . B[id = r.id]^o")))
    both = product(one, two)
    for events in ("A1 A2 A3 B1", "A1 A2 A3 B2", "A1 A2 A3 B3"):
        expected = accepts(one, string(events)) and accepts(two, string(events))
        assert accepts(both, string(events)) is expected


def test_a_type_is_a_register_of_marked_events() -> None:
    assert agreed("A^o . B[id = A.id]^o", "A1 B1") == everything(2)
    assert agreed("A^x . B[id = A.id]^o", "A1 B1") == set()


def test_a_transducer_says_what_is_wrong_with_it() -> None:
    good: Transducer = build(parse_sremo("A^o>r . B[id = r.id]^o"))
    for wrong in ({"start": 9}, {"finals": frozenset((9,))}, {"registers": frozenset[str]()}, {"n_states": 1}):
        with pytest.raises(ValueError, match=r"must be among|does not exist"):
            replace(good, **wrong)
    with pytest.raises(ValueError, match="distinct"):
        replace(good, transitions=good.transitions * 2)
    lost = tuple(replace(step, condition=None) for step in good.transitions if step.output)
    with pytest.raises(ValueError, match="nothing to mark"):
        replace(good, transitions=lost)
