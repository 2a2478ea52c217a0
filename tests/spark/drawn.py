"""Random questions and streams for Spark, batch and live: many of both in one case, because a job
costs half a second whatever its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st

from cerite.engine.plan import plan
from cerite.pattern import QuerySpec
from tests import strategies as random
from tests.aggregates import aggregate_patterns
from tests.dressed import Dress
from tests.properties.agreement import SEMANTICS, Rows, engine_queries, runnable
from tests.telling import LARGE

Question = tuple[QuerySpec, Any]  # with its semantics
REGISTERS = random.queries(random.register_patterns(3) | aggregate_patterns()).filter(
    lambda query: runnable(query) and plan(query).has_registers
)
NUMBERS = [("int64", "float64"), ("int8", "float32 and -0.0"), ("float64", "-0.0"), ("decimal(5,0)", "decimal(8,2)"),
           ("int64", "decimal(8,2)")]  # fmt: skip
CLOCKS = ["int64", "beyond 2^53", "floats between", "decimal(8,2)", "timestamp[us]", "date32"]
DRESSES = st.builds(
    lambda numbers, at: Dress(numbers[0], numbers[1], at=at), st.sampled_from(NUMBERS), st.sampled_from(CLOCKS)
)


@dataclass(frozen=True)
class Drawn:
    """Random questions and streams."""

    questions: list[Question]
    streams: list[Rows]
    dress: Dress

    def _repr_pretty_(self, printer: Any, _: object) -> None:
        """Hypothesis would take minutes to print so many queries; the assertion names the one that fails."""
        printer.text("…")


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    plain = draw(st.lists(st.tuples(engine_queries(), SEMANTICS), min_size=24, max_size=24))
    reading = draw(st.lists(st.tuples(REGISTERS, SEMANTICS), min_size=12, max_size=12))
    streams = random.streams(8) | random.streams(8, random.full_rows)
    return Drawn([*plain, *reading], draw(st.lists(streams, min_size=15, max_size=15)), draw(DRESSES))


def random_cases(examples: int) -> settings:
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=LARGE, phases=[Phase.generate],
        derandomize=True,
    )  # fmt: skip
