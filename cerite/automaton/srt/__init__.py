"""Symbolic register transducers (SRT report): one construction per module, and a reference interpreter.

`build` makes the transducer of a SREMO; `runs.string_matches` and `streaming.detected` say what it matches.
"""

from cerite.automaton.srt.build import build
from cerite.automaton.srt.complement import complement
from cerite.automaton.srt.concat import concat
from cerite.automaton.srt.conditions import TOP, Condition
from cerite.automaton.srt.determinise import determinise, is_deterministic
from cerite.automaton.srt.epsilon import eliminate_epsilon
from cerite.automaton.srt.flow import from_empty
from cerite.automaton.srt.product import product
from cerite.automaton.srt.runs import Configuration, Run, accepts, initial, runs, string_matches, successors
from cerite.automaton.srt.star import star
from cerite.automaton.srt.streaming import detected, streaming
from cerite.automaton.srt.terminals import empty, nothing, terminal
from cerite.automaton.srt.transducer import Transducer, Transition
from cerite.automaton.srt.union import union
from cerite.automaton.srt.unroll import is_unrolled, longest_run, unroll, unrolled_window
from cerite.automaton.srt.window import windowed

__all__ = [
    "TOP", "Condition", "Configuration", "Run", "Transducer", "Transition", "accepts", "build", "complement",
    "concat", "detected", "determinise", "eliminate_epsilon", "empty", "from_empty", "initial",
    "is_deterministic", "is_unrolled", "longest_run", "nothing", "product", "runs", "star", "streaming",
    "string_matches", "successors", "terminal", "union", "unroll", "unrolled_window", "windowed",
]  # fmt: skip
