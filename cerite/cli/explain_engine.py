"""The engine's part of `cerite explain`: automaton, tests, what is dropped before the loop, and what an event costs."""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from cerite import viz
from cerite.automaton import Automaton
from cerite.automaton.automaton import TRUE
from cerite.engine.plan import Plan, plan
from cerite.errors import PatternError
from cerite.pattern.query import Query


def explain_engine(tree: Tree, query: Query) -> None:
    """Add how the local engine runs the query, or why it does not."""
    try:
        made = plan(query)
    except PatternError as error:
        tree.add(Text(f"not run: {error.message}", style="yellow"))
        return
    automaton = made.automaton
    shown = tree.add(f"automaton: {automaton.n_states} states, {len(automaton.transitions)} transitions")
    shown.add(Text(viz.table(automaton)))
    tests = tree.add("tests, each evaluated once per batch")
    for test in made.tests:
        tests.add(Text(str(test)))
    tree.add(Text(_dropped(automaton)))
    tree.add(Text(_cost(made)))
    counting = "; counting enumerates nothing" if made.counts_without_enumerating else ""
    tree.add(f"per match: time linear in its number of events{counting}")


def _dropped(automaton: Automaton) -> str:
    looping = {each.source for each in automaton.transitions if each.source == each.target and each.label == 0}
    waiting = {each.source for each in automaton.transitions} - {automaton.initial}
    conditions = {each.condition for each in automaton.transitions if each.source != each.target or each.label}
    if TRUE in conditions:
        return "dropped before the loop: nothing, because some step takes any event"
    if waiting <= looping:
        return "dropped before the loop: every event that satisfies none of the tests"
    return (
        "dropped before the loop: of events that satisfy no test, all but the first in a row (it ends contiguous runs)"
    )


def _cost(made: Plan) -> str:
    states = made.automaton.n_states - 1
    bound = f"per event: at most 2^{states} deterministic states of {states}, each touched at most once per label"
    memory = "memory follows the window" if made.window is not None else "no window: memory grows with the stream"
    return f"{bound}; {memory}"
