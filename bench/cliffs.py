"""Patterns that are expensive if handled naively: `python -m bench.cliffs [--only NAME] [--limit SECONDS]`.

The matches of each case are counted at sizes that double, which shows the growth with the pattern, the stream and the
window: a line has the size of the automaton, and the processor time of planning and of counting (so the machine need
not be quiet). The first size of a case runs once before it is measured, so that no compilation is measured. For a size
that is refused, the reason is printed; a size that takes longer than the limit ends its case.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import cerite
from cerite.core.errors import CeriteError
from cerite.engine.plan import plan
from cerite.language.ceql import parse_query


@dataclass(frozen=True)
class Case:
    """A pattern, a clause and a number of events, all depending on one size."""

    name: str
    sizes: tuple[int, ...]
    pattern: Callable[[int], str]
    clause: Callable[[int], str] = lambda size: ""
    events: Callable[[int], int] = lambda size: 20_000
    types: str = "AB"
    strategy: str = ""

    def text(self, size: int) -> str:
        """The query."""
        return f"SELECT {self.strategy} * FROM S WHERE {self.pattern(size)} {self.clause(size)}"

    def table(self, size: int) -> pa.Table:
        """The stream."""
        draw = random.Random(1)
        return pa.table({"type": [draw.choice(self.types) for _ in range(self.events(size))]})


def _subsets(size: int) -> str:
    return f"((A OR B)* ; A ; (A OR B){{{size}}})"


CASES = (
    Case("subsets", (2, 4, 8, 16, 20), _subsets, lambda size: "WITHIN 60 EVENTS", lambda size: 100),
    Case("repeats", (25, 50, 100, 200), lambda size: f"A{{{size}}} ; B"),
    Case("repeats in a window", (25, 50, 100), lambda size: f"A{{{size}}} ; B", lambda size: "WITHIN 1000 EVENTS"),
    Case("by stream", (10_000, 20_000, 40_000), lambda size: "A{50} ; B", events=lambda size: size),
    Case("by window", (500, 1000, 2000), lambda size: "A{20} ; B", lambda size: f"WITHIN {size} EVENTS"),
    Case("repeats and more, NEXT", (50, 100), lambda size: f"A{{{size},}} ; B", strategy="NEXT"),
    Case("long sequences", (500, 1000, 2000), lambda size: " ; ".join("AB" * (size // 2)), events=lambda size: 100),
    Case("nested", (2, 5, 10, 20), lambda size: f"(A{{1,30}}){{1,{size}}}", events=lambda size: 20, types="A"),
)


def measured(case: Case, size: int) -> tuple[str, float]:
    """A line about one size of a case, and the time it took."""
    query, table = cerite.query(case.text(size)), case.table(size)
    start = time.process_time()
    try:
        automaton = plan(parse_query(case.text(size))).automaton
        planned = time.process_time()
        count = str(query.run(table).count())
    except CeriteError as error:
        return f"refused: {error.message}", time.process_time() - start
    counted = time.process_time()
    shape = f"{automaton.n_states:,} states, {len(automaton.transitions):,} transitions"
    shown = count if len(count) < 16 else f"a number of {len(count)} digits"
    return f"{shape}: plan {planned - start:.2f} s, count {counted - planned:.2f} s ({shown})", counted - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="the name of one case")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds after which larger sizes are left out")
    request = parser.parse_args()
    for case in CASES:
        if request.only in (None, case.name):
            measured(case, case.sizes[0])
            for size in case.sizes:
                line, seconds = measured(case, size)
                print(f"{case.name} {size:,}: {line}", flush=True)
                if seconds > request.limit:
                    break


if __name__ == "__main__":
    main()
