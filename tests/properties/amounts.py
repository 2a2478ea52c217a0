"""How many random cases with an absence, an aggregate or a measure are compared with the judge.

Each number is that of one test; most cases are of the cheapest kind, patterns without clauses.
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
