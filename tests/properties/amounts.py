"""How many random cases are compared with the judge that contain an absence, an aggregate or a measure.

Each number is of one test. By day they are at least `LEAST` in all; of the cheapest, patterns without clauses, there
are most.
"""

from __future__ import annotations

from tests.telling import often

ABSENCES = {
    "patterns": often(1840, by_day=920), "parts": often(300, by_day=150), "queries": often(600, by_day=300),
    "little room": often(300, by_day=150), "stream": often(600, by_day=300),
}  # fmt: skip
AGGREGATES = {
    "patterns": often(760, by_day=380), "queries": often(760, by_day=380), "strategies": often(200, by_day=100),
    "stream": often(200, by_day=100), "little room": often(200, by_day=100),
}  # fmt: skip
MEASURES = {"measures": often(260, by_day=130)}
LEAST = 3_000


def total() -> int:
    """All of them."""
    return sum(each.max_examples for group in (ABSENCES, AGGREGATES, MEASURES) for each in group.values())
