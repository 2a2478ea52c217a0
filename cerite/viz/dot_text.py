"""An automaton as Graphviz DOT text."""

from __future__ import annotations

from cerite.automaton import Automaton
from cerite.viz.edges import edges, name


def dot(automaton: Automaton) -> str:
    """A digraph for `dot -Tsvg`: final states are double circles, transitions between the same states share an arrow.

    >>> from cerite.automaton import Transition
    >>> labels = (frozenset(), frozenset({"x"}))
    >>> print(dot(Automaton(2, 0, frozenset({1}), (Transition(0, 0, 1, 1),), ("price > 1",), labels)))
    digraph automaton {
        rankdir=LR;
        bgcolor="transparent";
        node [shape=circle];
        start [shape=point, style=invis, width=0];
        q0 [label="q0"];
        q1 [label="q1", shape=doublecircle];
        start -> q0;
        q0 -> q1 [label="price > 1 / x"];
    }
    <BLANKLINE>
    """
    rows = ["rankdir=LR;", 'bgcolor="transparent";', "node [shape=circle];"]
    rows.append("start [shape=point, style=invis, width=0];")
    for state in range(automaton.n_states):
        shape = ", shape=doublecircle" if state in automaton.finals else ""
        rows.append(f'{name(state)} [label="{name(state)}"{shape}];')
    rows.append(f"start -> {name(automaton.initial)};")
    for edge in edges(automaton):
        label = "\\n".join(_escaped(str(line)) for line in edge.lines)
        rows.append(f'{name(edge.source)} -> {name(edge.target)} [label="{label}"];')
    return "digraph automaton {\n" + "".join(f"    {row}\n" for row in rows) + "}\n"


def _escaped(text: str) -> str:
    """Text inside double quotes; Graphviz reads entities in labels, so `&` is one too."""
    for plain, safe in (("\\", "\\\\"), ('"', '\\"'), ("&", "&amp;"), ("\n", "\\n")):
        text = text.replace(plain, safe)
    return text
