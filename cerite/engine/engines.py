"""The engine objects of a plan: one that finds its matches, one that counts them."""

from __future__ import annotations

from cerite.core.kernel_cache import expect
from cerite.engine.counting.counter import Counter
from cerite.engine.counting.kernel import count_events
from cerite.engine.intake.intake import Intake
from cerite.engine.registers.counter import RegisterCounter
from cerite.engine.registers.counter import count as count_registers
from cerite.engine.registers.recogniser import RegisterRecogniser
from cerite.engine.registers.recogniser import update as update_registers
from cerite.engine.subset.recogniser import Recogniser, update
from cerite.engine.tecs.enumerate import enumerate_roots

Engine = Recogniser | RegisterRecogniser | Counter | RegisterCounter


def recogniser_of(intake: Intake) -> Recogniser | RegisterRecogniser:
    """The engine that finds the matches."""
    plan = intake.plan
    if intake.machine is not None:
        expect(update_registers, enumerate_roots)
        return RegisterRecogniser(
            intake.machine, consume=plan.consume, limit=plan.limit, strategy=plan.strategy,
            shared_clock=plan.shared_clock,
        )  # fmt: skip
    expect(update, enumerate_roots)
    return Recogniser(
        plan.automaton, consume=plan.consume, limit=plan.limit, strategy=plan.strategy, shared_clock=plan.shared_clock
    )


def counter_of(intake: Intake) -> Counter | RegisterCounter:
    """The engine that counts the matches without enumerating them."""
    plan = intake.plan
    windowed = plan.window is not None
    if intake.machine is not None:
        expect(count_registers)
        return RegisterCounter(intake.machine, windowed=windowed, consume=plan.consume, shared_clock=plan.shared_clock)
    expect(count_events)
    return Counter(plan.automaton, windowed=windowed, consume=plan.consume, shared_clock=plan.shared_clock)
