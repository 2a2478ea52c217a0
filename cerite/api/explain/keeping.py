"""What a live stream keeps, in `cerite explain`: how long a partial match lives, what remains of a key, and why.

It describes what `cerite.engine.recycle` does: whatever no event can bind any more is forgotten.
"""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from cerite.automaton import Automaton
from cerite.engine.bind import Program
from cerite.engine.plan import Plan
from cerite.engine.registers.leaves import Value


def explain_keeping(tree: Tree, program: Program) -> None:
    """Add to the tree what a stream without end has to keep."""
    plan = program.plan
    state, why = growth(plan)
    branch = tree.add(Text(f"keeps: {state}; {why}"))
    branch.add(Text(f"a partial match: {_life(plan)}"))
    if plan.partition:
        key = ", ".join(plan.partition)
        if plan.needs_history:
            branch.add(Text(f"every value of {key}: runs through a part are compared with all that began before them"))
        else:
            branch.add(Text(f"a value of {key}: while it has a partial match; nothing of it after"))
    if plan.suppress is not None:
        of_key = f" of each value of {', '.join(plan.partition)}" if plan.suppress.per_partition else ""
        branch.add(Text(f"the time of the last report{of_key}: until {plan.suppress.size} have passed"))
    if program.machine is not None and any(isinstance(x, Value) and x.is_text for _, x in program.machine.slots):
        branch.add("a string: while a stored value is this string")


def growth(plan: Plan) -> tuple[str, str]:
    """What the state of a stream grows with, and why.

    >>> from cerite.engine.plan import plan
    >>> from cerite.language.ceql import parse_query
    >>> grows = lambda text: growth(plan(parse_query(f"SELECT * FROM S WHERE A ; B {text}")))[0]
    >>> grows("WITHIN 5 seconds"), grows("PARTITION BY [k] WITHIN 5 EVENTS"), grows("")
    ('what is in the window', 'what is in the windows of all keys', 'more with every partial match')
    """
    by_key = bool(plan.partition)
    if plan.needs_history:
        grows = "more with every key" if by_key else "what is in the window, and runs that began before it"
        return grows, "a part is selected among all runs through it, however long ago they began"
    if plan.window is None:
        if _waits(plan.automaton):
            return "more with every partial match", "without WITHIN it can go on at any later event"
        last = "the last events of all keys" if by_key else "the last events"
        return f"what {last} began", "a partial match ends at an event that does not take it further"
    if plan.shared_clock or not by_key:
        return "what is in the window", "what has left it is forgotten"
    return (
        "what is in the windows of all keys",
        f"a window of {plan.window} moves with the events of its key, so if a key falls silent, its window stays open; "
        "a window of time would close",
    )


def _life(plan: Plan) -> str:
    window, of_key = plan.window, " of its key" if plan.partition else ""
    if window is None:
        if _waits(plan.automaton):
            return "for ever, one entry for all with the same future"
        return f"until the next event{of_key} that does not take it further"
    if window.is_time:
        return f"until {window} have passed since its start, whatever events come"
    if window.unit == "events":
        return f"until {window} have come{of_key}, its first one included"
    return f"until an event{of_key} is more than {window} after its start"


def _waits(automaton: Automaton) -> bool:
    """Whether a partial match can pass over events without end and mark none of them."""
    started = frozenset(range(automaton.n_states)) - automaton.before - {automaton.initial}
    steps = {(t.source, t.target) for t in automaton.transitions if not t.label and {t.source, t.target} <= started}
    while more := {(a, d) for a, b in steps for c, d in steps if b == c} - steps:
        steps |= more
    return any(a == b for a, b in steps)
