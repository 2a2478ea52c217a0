"""Symbolic register transducers (SRT report): their constructions, and a reference interpreter.

`build` makes the transducer of a SREMO; `runs.string_matches` and `constructions.detected` say what it matches.
"""

from cerite.reference.srt.build import build
from cerite.reference.srt.by_minterms import complement, determinise, is_deterministic
from cerite.reference.srt.constructions import (
    concat,
    detected,
    empty,
    nothing,
    product,
    star,
    streaming,
    terminal,
    union,
    windowed,
)
from cerite.reference.srt.epsilon import eliminate_epsilon
from cerite.reference.srt.flow import from_empty
from cerite.reference.srt.runs import Configuration, Run, accepts, initial, runs, string_matches, successors
from cerite.reference.srt.transducer import Transducer, Transition
from cerite.reference.srt.transition_conditions import TOP, Condition
from cerite.reference.srt.unroll import is_unrolled, longest_run, unroll, unrolled_window

__all__ = [
    "TOP", "Condition", "Configuration", "Run", "Transducer", "Transition", "accepts", "build", "complement",
    "concat", "detected", "determinise", "eliminate_epsilon", "empty", "from_empty", "initial",
    "is_deterministic", "is_unrolled", "longest_run", "nothing", "product", "runs", "star", "streaming",
    "string_matches", "successors", "terminal", "union", "unroll", "unrolled_window", "windowed",
]  # fmt: skip
