"""The engine's part of `cerite explain`: automaton, tests, what is dropped before the loop, and what an event costs."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from rich.tree import Tree

from cerite.api.explain.keeping import explain_keeping
from cerite.api.explain.registers import counted, explain_registers
from cerite.automaton import Automaton
from cerite.automaton.automaton import Preceding
from cerite.automaton.relevance import relevance, unconditional
from cerite.core.errors import PatternError, SchemaError
from cerite.core.schema import Schema
from cerite.engine.at_rest.threads import divided
from cerite.engine.bind import Program, bind
from cerite.engine.events.rows import Columns
from cerite.engine.guessed_kinds import TIME, columns_of
from cerite.engine.plan import Plan
from cerite.engine.registers.description import readable


def explain_engine(tree: Tree, planned: Callable[[], Plan], schema: Schema | None) -> None:
    """Add to the tree how the local engine runs the query that is `planned`, or why it does not."""
    try:
        runnable = planned()
        columns, guessed = columns_of(runnable, schema)
        program = bind(runnable, columns, Columns(time=TIME))
    except (PatternError, SchemaError) as error:
        tree.add(Text(f"not run: {error.message}", style="yellow"))
        return
    tree.add(Text(f"chosen: {program.choice.engine}; {program.choice.why}"))
    automaton, machine = runnable.automaton, program.machine
    drawn = tree.add(f"automaton: {automaton.n_states} states, {len(automaton.transitions)} transitions")
    drawn.add(Text(str(automaton)))
    if machine is None:
        tests = tree.add("tests, each evaluated once per batch")
        for test in runnable.tests:
            tests.add(Text(str(test)))
        tree.add(Text(_dropped(automaton)))
    else:
        explain_registers(tree, program, machine)
        if guessed:
            tree.add(
                Text(f"kinds guessed from the query, because no schema was given: {', '.join(guessed)}", style="dim")
            )
    for number, each in enumerate(automaton.preceding):
        tree.add(Text(_followed(number, each)))
    tree.add(Text(_cost(program)))
    explain_keeping(tree, program)
    exact = runnable.counts_without_enumerating
    counting = "; counting enumerates nothing" if exact or runnable.reports_one else ""
    if exact and machine is not None:
        counting += f", {counted(program, machine)}"
    walk = "" if program.grouping_for_matches is None else ", times the logarithm of the window at most"
    tree.add(f"per match: time linear in its number of events{walk}{counting}")
    tree.add(Text(f"on several cores, at rest: {divided(program)}"))


def _followed(number: int, preceding: Preceding) -> str:
    """How the engine keeps track of when something last began that must be absent before the match or a part."""
    window = "the query's window" if preceding.size is None else f"a window of {preceding.size}"
    kept = "entry of stored values" if preceding.is_stateful else "state of its own automaton"
    tests = "; ".join(sorted({readable(str(guard)) for guard in preceding.automaton.conditions}))
    return (
        f"absent before (since{number}), in {window}: {tests}; followed as events arrive, the latest start per {kept}"
    )


def _dropped(automaton: Automaton) -> str:
    shape = relevance(automaton)
    if unconditional(shape.moving):
        return "dropped before the loop: nothing, because some step takes any event"
    if not shape.gaps:
        return "dropped before the loop: every event that satisfies none of the tests"
    return (
        "dropped before the loop: of events that satisfy no test, all but the first in a row (it ends contiguous runs)"
    )


def _cost(program: Program) -> str:
    plan = program.plan
    if program.grouping_for_matches is not None:
        return "per event: the logarithm of the starts in the window, or the few entries that it wakes"
    if plan.has_registers:
        return "per event: the entries that it wakes, each touched once per label"
    states = plan.automaton.n_states - 1
    return f"per event: at most 2^{states} deterministic states of {states}, each touched at most once per label"
