"""The engine objects of a plan: one that finds its matches, one that counts them."""

from __future__ import annotations

from cerite.engine.count import Counter
from cerite.engine.count_kernel import count_events
from cerite.engine.enumerate_kernel import enumerate_roots
from cerite.engine.intake import Intake
from cerite.engine.recogniser import Recogniser
from cerite.engine.registers.count_kernel import count as count_registers
from cerite.engine.registers.counter import RegisterCounter
from cerite.engine.registers.recogniser import RegisterRecogniser
from cerite.engine.registers.update_kernel import update as update_registers
from cerite.engine.update_kernel import update
from cerite.kernel_cache import expect

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
