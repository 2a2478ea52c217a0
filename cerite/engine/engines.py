"""The engine objects of a plan: one that finds its matches, one that counts them."""

from __future__ import annotations

from cerite.engine.count import Counter
from cerite.engine.plan import Plan
from cerite.engine.recogniser import Recogniser


def recogniser_of(plan: Plan) -> Recogniser:
    """The engine that finds the matches; a limit has to wait where a window still drops some of them."""
    limit = None if plan.late_window is not None else plan.limit
    return Recogniser(
        plan.automaton, consume=plan.consume, limit=limit, strategy=plan.strategy, shared_clock=plan.shared_clock
    )


def counter_of(plan: Plan) -> Counter:
    """The engine that counts the matches without enumerating them."""
    windowed = plan.window is not None
    return Counter(plan.automaton, windowed=windowed, consume=plan.consume, shared_clock=plan.shared_clock)
