"""Transducers are drawn as automata are."""

from __future__ import annotations

from cerite.language.sremo import parse_sremo
from cerite.reference.srt import build, eliminate_epsilon, star

FIGURE_1 = build(parse_sremo("BUY^o>r1 . (true^x)* . SELL[id = r1.id]^x>r2"))


def test_every_form_tells_conditions_outputs_and_registers() -> None:
    plain = eliminate_epsilon(FIGURE_1)
    for text in (plain.dot(), str(plain)):
        assert all(each in text for each in ("BUY", "• ↓r1", "TRUE", "∘", "SELL[id = r1.id]", "⊗ ↓r2"))
    assert "#8226; #8595;r1" in plain.mermaid()
    assert plain._repr_mimebundle_()["text/vnd.mermaid"] == plain.mermaid()


def test_epsilon_is_drawn_and_the_start_may_be_entered() -> None:
    assert "ε" in str(FIGURE_1)
    loop = eliminate_epsilon(star(build(parse_sremo("A^o"))))
    assert [(step.source, step.target) for step in loop.transitions] == [(loop.start, loop.start)]
    assert f'q{loop.start} -> q{loop.start} [label="A / •"];' in loop.dot()
