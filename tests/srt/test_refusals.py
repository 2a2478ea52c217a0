"""What is refused, and that the message says what to write instead."""

from __future__ import annotations

import pytest

from cerite.core.errors import PatternError
from cerite.language.ceql import parse_pattern
from cerite.language.sremo import parse_sremo
from cerite.reference.srt import build, complement, determinise, product, unroll


@pytest.mark.parametrize(
    ("ceql", "advice"),
    [
        ("A ; B", "#(e, f)"),
        ("A ; NOT C ; B", "@(e, f)"),
        ("A+", "#(e*)"),
        ("PERMUTE(A, B)", "union"),
        ("A AS x", "A^o>x"),
        ("A FILTER A[price > 3]", "A[price > 3]^o"),
        ("PROJECT{A}(A : B)", "^x"),
        ("NEXT(A)", "@(e, f)"),
        ("(A WITHIN 30 seconds)", "[1..w]"),
        ("(A WITHIN 9 [price])", "[1..w]"),
    ],
)
def test_constructs_that_are_not_sremo_are_refused_with_advice(ceql: str, advice: str) -> None:
    with pytest.raises(PatternError, match="is not a SREMO") as refused:
        build(parse_pattern(ceql))
    assert advice in (refused.value.hint or "")
    assert refused.value.span is not None


def test_explosions_end_with_an_error() -> None:
    wide = build(parse_sremo("(true^o>r . (A[id = r.id]^o + B[id = r.id]^o + C[id != r.id]^o)*)"))
    with pytest.raises(PatternError, match="unrolling makes a transducer of more than 100 transitions") as refused:
        unroll(wide, 60, limit=100)
    assert "smaller window" in (refused.value.hint or "")
    many = build(parse_sremo(" + ".join(f"[a{k} = 1]^o" for k in range(40))))
    for construction in (determinise, complement):
        with pytest.raises(PatternError, match="determinisation makes"):
            construction(many, limit=1000)
    with pytest.raises(PatternError, match="the intersection makes"):
        product(many, many, limit=100)
    with pytest.raises(PatternError, match="the iteration makes"):
        build(parse_pattern("(A : B : C):{1,9000}"))
