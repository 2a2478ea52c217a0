"""A transducer as the automaton that `cerite.viz` draws: `svg(drawn(t))`, `dot(drawn(t))`, `mermaid`, `table`.

A transition ϕ ↑ o ↓ W reads as ϕ and marks as `• ↓W`; one that neither marks nor stores is drawn like an unmarked one.
"""

from __future__ import annotations

from cerite.automaton.automaton import TRUE, Automaton
from cerite.automaton.automaton import Transition as Arrow
from cerite.automaton.srt.conditions import TOP
from cerite.automaton.srt.transducer import Transducer, Transition

EPSILON, MARKED, UNMARKED = "ε", "•", "⊗"


class _Drawn(Automaton):
    """An automaton for pictures only: unlike a CEA's, its start may be entered."""

    def __post_init__(self) -> None:
        pass


def drawn(transducer: Transducer) -> Automaton:
    """The picture's automaton.

    >>> from cerite.automaton.srt.build import build
    >>> from cerite.language.sremo import parse_sremo
    >>> from cerite.viz import mermaid
    >>> print(mermaid(drawn(build(parse_sremo("BUY^o>r")))))
    flowchart LR
        start[ ] --> q0
        q0(("q0"))
        q1((("q1")))
        q0 -->|"BUY / #8226; #8595;r"| q1
        style start fill:none,stroke:none
    <BLANKLINE>
    """
    conditions: dict[str, int] = {}
    labels: dict[frozenset[str], int] = {frozenset(): 0}
    arrows = []
    for each in transducer.transitions:
        read = EPSILON if each.condition is None else str(each.condition)
        condition = TRUE if each.condition == TOP else conditions.setdefault(read, len(conditions))
        label = labels.setdefault(_label(each), len(labels))
        arrows.append(Arrow(each.source, condition, label, each.target))
    start, finals = transducer.start, transducer.finals
    return _Drawn(transducer.n_states, start, finals, tuple(arrows), tuple(conditions), tuple(labels))


def _label(transition: Transition) -> frozenset[str]:
    stored = f" ↓{','.join(sorted(transition.writes))}" if transition.writes else ""
    if not transition.output and not stored:
        return frozenset()
    return frozenset(((MARKED if transition.output else UNMARKED) + stored,))
