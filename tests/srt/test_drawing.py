"""Transducers are drawn by the same pictures as automata."""

from __future__ import annotations

from xml.etree import ElementTree

from cerite.automaton.srt import build, drawn, eliminate_epsilon, star
from cerite.language.sremo import parse_sremo
from cerite.viz import dot, mermaid, svg, table

FIGURE_1 = build(parse_sremo("BUY^o>r1 . (true^x)* . SELL[id = r1.id]^x>r2"))


def test_every_form_tells_conditions_outputs_and_registers() -> None:
    plain = drawn(eliminate_epsilon(FIGURE_1))
    for text in (dot(plain), table(plain), svg(plain)):
        assert all(each in text for each in ("BUY", "• ↓r1", "TRUE", "SELL[id = r1.id]", "⊗ ↓r2"))
    assert "#8226; #8595;r1" in mermaid(plain)
    ElementTree.fromstring(FIGURE_1._repr_svg_())


def test_epsilon_is_drawn_and_the_start_may_be_entered() -> None:
    assert "ε" in str(FIGURE_1)
    loop = eliminate_epsilon(star(build(parse_sremo("A^o"))))
    assert [(step.source, step.target) for step in loop.transitions] == [(loop.start, loop.start)]
    ElementTree.fromstring(svg(drawn(loop)))
