"""The SRT report's own examples, in its order. Positions count from 0 here, from 1 there."""

from __future__ import annotations

from typing import Any

import pytest

from cerite.core.errors import PatternError
from cerite.language.sremo import parse_sremo
from cerite.reference.semantics import Stream
from cerite.reference.srt import (
    Configuration,
    Transducer,
    accepts,
    build,
    complement,
    detected,
    determinise,
    eliminate_epsilon,
    is_deterministic,
    is_unrolled,
    runs,
    string_matches,
    unroll,
    unrolled_window,
    windowed,
)

TABLE_1 = [
    {"type": kind, "id": company, "price": price, "volume": volume}
    for kind, company, price, volume in [
        ("B", 1, 22, 300), ("B", 1, 24, 225), ("B", 2, 32, 1210),
        ("S", 1, 70, 760), ("S", 1, 68, 2000), ("B", 2, 33, 95),
    ]
]  # fmt: skip
EXPRESSION_2 = "B^o>r1 . (true^x)* . S[id = r1.id]^o"
FIGURE_4 = "(true^x)* . B^o>r1 . (true^x)* . S[id = r1.id]^o"


def prefix(length: int) -> Stream:
    return Stream.of(TABLE_1[:length])


def transducer(text: str) -> Transducer:
    return eliminate_epsilon(build(parse_sremo(text)))


def sets(*matches: set[int]) -> set[frozenset[int]]:
    return set(map(frozenset, matches))


def string(text: str) -> Stream:
    """`B1 S2`: events of a type and an id."""
    return Stream.of({"type": each[0], "id": int(each[1:])} for each in text.split())


def test_examples_16_and_19_a_buy_and_a_sale_of_the_same_company() -> None:
    assert string_matches(transducer(EXPRESSION_2), prefix(4)) == sets({0, 3})
    assert string_matches(transducer(EXPRESSION_2), prefix(5)) == sets({0, 4})
    assert not accepts(transducer(EXPRESSION_2), prefix(6))


def test_figure_1_is_the_transducer_of_expression_2() -> None:
    assert str(transducer(EXPRESSION_2)).splitlines()[2:] == [
        "q0     start  B              • ↓r1  q1",
        "q1            TRUE           ∘      q1",
        "              S[id = r1.id]  •      q2",
        "q2     final  -              -      -",
    ]


def test_example_25_the_run_over_the_first_four_events() -> None:
    built = transducer(EXPRESSION_2)
    registers = frozenset({("r1", 0)})
    accepting = [run for run in runs(built, prefix(4)) if run.configurations[-1].state in built.finals]
    assert [run.configurations for run in accepting] == [
        (
            Configuration(0, 0, frozenset()), Configuration(1, 1, registers), Configuration(2, 1, registers),
            Configuration(3, 1, registers), Configuration(4, 2, registers),
        )
    ]  # fmt: skip
    assert accepting[0].matched(prefix(4)) == {0, 3}
    assert len(list(runs(built, prefix(4)))) == 2  # the other one stays in q1


def test_example_28_a_suspicious_price_and_a_sale() -> None:
    built = build(parse_sremo("(B[price < 10]^o>r1 + B[price > 500]^o>r1) . S[id = r1.id]^o"))
    assert built.registers == {"r1"}
    assert (built.n_states, len(built.transitions)) == (8, 3 + 5)  # figure 3c
    plain = eliminate_epsilon(built)
    assert (plain.n_states, len(plain.transitions)) == (3, 3)
    for price, other, expected in [(5, 1, True), (900, 1, True), (50, 1, False), (5, 2, False)]:
        rows = [{"type": "B", "id": 1, "price": price}, {"type": "S", "id": other}]
        assert accepts(built, Stream.of(rows)) is expected


def test_section_4_3_a_match_after_the_second_and_after_the_fifth_symbol() -> None:
    stream = Stream.of({"type": each} for each in "abcabc")
    assert detected(build(parse_sremo("a^o . b^o")), stream) == sets({0, 1}, {3, 4})
    assert detected(build(parse_sremo(EXPRESSION_2)), prefix(6)) == sets({0, 3}, {0, 4}, {1, 3}, {1, 4})


def test_example_40_a_window_of_four() -> None:
    built = windowed(transducer(EXPRESSION_2), 4)
    assert string_matches(built, prefix(4)) == sets({0, 3})
    assert string_matches(built, prefix(5)) == set()


def test_example_42_and_figure_5_unrolling_figure_4() -> None:
    figure_4 = transducer(FIGURE_4)
    assert not is_deterministic(figure_4)
    for length in (2, 3):
        unrolled = unroll(figure_4, length)
        assert is_unrolled(unrolled)
        assert len(unrolled.written) == length - 1  # "the overhead of one extra register" for 3
    assert is_deterministic(unroll(figure_4, 2))
    assert not is_deterministic(unroll(figure_4, 3))
    deterministic = determinise(unroll(figure_4, 3))
    assert is_deterministic(deterministic)
    for text in ("B1 S1", "B1 S2", "B1 B2 S1", "B1 B2 S2", "B1 B2 S3", "S1 B1 S1", "B1 S1 S1", "B1 S1 B1"):
        assert accepts(deterministic, string(text)) is accepts(figure_4, string(text)), text


def test_figure_14_minterms_of_conditions_that_may_hold_together() -> None:
    """From one state A, an id of 1, and anything lead on: an A of id 1 goes all three ways at once."""
    t = determinise(build(parse_sremo("A^o . B^o + [id = 1]^o . C^o + true^o . D^o")))
    assert is_deterministic(t)
    assert len(t.leaving[t.start]) == 4  # A or not, id 1 or not
    cases = {"A1 B0": True, "A1 C0": True, "A2 C0": False, "B1 C0": True, "B2 B0": False, "B2 D0": True}
    for text, expected in cases.items():
        assert accepts(t, string(text)) is expected, text


def test_theorem_35_same_type_twice_has_no_complement_without_a_window() -> None:
    figure_12 = "(true^x)* . true^o>r1 . (true^x)* . [kind = r1.kind]^o . (true^x)*"
    with pytest.raises(PatternError, match="has loops") as refused:
        build(parse_sremo(f"!({figure_12})"))
    assert "[1..w]" in (refused.value.hint or "")
    rows: list[dict[str, Any]] = [{"type": "T", "kind": kind} for kind in (1, 2, 3, 2)]
    bounded = complement(unroll(build(parse_sremo(figure_12)), 4))
    assert accepts(bounded, Stream.of(rows[:3]))
    assert not accepts(bounded, Stream.of(rows))


def test_theorem_38_figure_13_is_not_determinised_without_a_window() -> None:
    with pytest.raises(PatternError, match="has no deterministic form"):
        determinise(build(parse_sremo(FIGURE_4)))


def test_section_5_1_2_negation_inside_a_windowed_expression() -> None:
    built = build(parse_sremo("(A^o>r1 . !(B^o) . C[id = r1.id]^o)[1..4]"))
    assert string_matches(built, string("A1 B1 C1")) == set()
    assert string_matches(built, string("A1 C1")) == sets({0, 1})
    assert string_matches(built, string("A1 B1 B1 C1")) == sets({0, 3})
    assert string_matches(built, string("A1 B1 B1 B1 C1")) == set()


def test_definition_45_skip_till_next_takes_the_next_one() -> None:
    for text in ("@(A^o>r, B[id = r.id]^o)", "(@(A^o>r, B[id = r.id]^o . C[id = r.id]^o))[1..9]"):
        built = build(parse_sremo(text))
        stream = string("A1 B2 C2 B1 C1 B1 C1")
        assert {tuple(sorted(each)) for each in detected(built, stream)} == {(0, 3) if "C" not in text else (0, 3, 4)}


def test_lemma_46_unrolls_expression_2_in_a_window() -> None:
    built = unrolled_window(transducer(EXPRESSION_2), 4)
    assert is_unrolled(built)
    assert string_matches(built, prefix(4)) == sets({0, 3})
    assert string_matches(built, prefix(5)) == set()
