"""An automaton as a Mermaid flowchart, which GitHub draws from a ```mermaid block."""

from __future__ import annotations

import string

from cerite.automaton import Automaton
from cerite.viz.edges import edges, name

_PLAIN = frozenset(string.ascii_letters + string.digits + " ,/()=+'!?")


def mermaid(automaton: Automaton) -> str:
    """A flowchart from left to right; whatever Mermaid might read as its own syntax is written as a character code.

    >>> from cerite.automaton import Transition
    >>> labels = (frozenset(), frozenset({"x"}))
    >>> print(mermaid(Automaton(2, 0, frozenset({1}), (Transition(0, 0, 1, 1),), ("price > 1",), labels)))
    flowchart LR
        start[ ] --> q0
        q0(("q0"))
        q1((("q1")))
        q0 -->|"price #62; 1 / x"| q1
        style start fill:none,stroke:none
    <BLANKLINE>
    """
    rows = [f"start[ ] --> {name(automaton.initial)}"]
    for state in range(automaton.n_states):
        left, right = ("(((", ")))") if state in automaton.finals else ("((", "))")
        rows.append(f'{name(state)}{left}"{name(state)}"{right}')
    for edge in edges(automaton):
        label = "<br/>".join(_escaped(str(line)) for line in edge.lines)
        rows.append(f'{name(edge.source)} -->|"{label}"| {name(edge.target)}')
    rows.append("style start fill:none,stroke:none")
    return "flowchart LR\n" + "".join(f"    {row}\n" for row in rows)


def _escaped(text: str) -> str:
    return "".join(c if c in _PLAIN else "<br/>" if c == "\n" else f"#{ord(c)};" for c in text)
