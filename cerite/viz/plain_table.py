"""An automaton as an aligned table of plain text."""

from __future__ import annotations

from cerite.automaton import Automaton
from cerite.viz.edges import line, name, one_line
from cerite.viz.measure import cells


def table(automaton: Automaton) -> str:
    """One row per transition, by source state; a state that no transition leaves has a row of its own.

    >>> from cerite.automaton import Transition
    >>> labels = (frozenset(), frozenset({"x"}))
    >>> print(table(Automaton(2, 0, frozenset({1}), (Transition(0, 0, 1, 1),), ("price > 1",), labels)))
    state         reads      marks  goes to
    ------------  ---------  -----  -------
    q0     start  price > 1  x      q1
    q1     final  -          -      -
    <BLANKLINE>
    """
    wide = len(name(automaton.n_states - 1))
    leaving: dict[int, list[tuple[str, str, str]]] = {}
    for t in automaton.transitions:
        text = line(automaton, t)
        leaving.setdefault(t.source, []).append((one_line(text.reads), one_line(text.marks), name(t.target)))
    rows = [("state", "reads", "marks", "goes to")]
    for state in range(automaton.n_states):
        flags = ("start", state == automaton.initial), ("final", state in automaton.finals)
        first = f"{name(state):<{max(wide, 5)}}  {','.join(word for word, holds in flags if holds)}"
        for k, cols in enumerate(leaving.get(state, [("-", "-", "-")])):
            rows.append((first if k == 0 else "", *cols))
    widths = [max(cells(row[k]) for row in rows) for k in range(4)]
    rows.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2], "-" * widths[3]))
    padded = (
        "  ".join(text + " " * (width - cells(text)) for text, width in zip(row, widths, strict=True)) for row in rows
    )
    return "".join(row.rstrip() + "\n" for row in padded)
