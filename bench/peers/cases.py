"""The queries that other engines have as well, each as Cerite and as Esper write it, with the stream it runs on.

FlinkCEP has no text: src/FlinkPeer.java builds the pattern of each case. Every engine gives two measures of a match,
the value of its first event and how many events its iteration holds, so that more than the number of matches is
compared. Windows of the peers are exclusive, ours are inclusive: theirs of 100 milliseconds is ours of 99.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Case:
    """A query: its window in milliseconds, Cerite's and Esper's words, and the types of its events and their shares."""

    name: str
    window: int
    cerite: str
    esper: str
    types: str
    shares: tuple[float, ...]
    keys: int = 10

    @property
    def query(self) -> str:
        """As Cerite runs it."""
        return f"{self.cerite} WITHIN {self.window - 1} milliseconds"

    def stream(self, events: int) -> pa.Table:
        """Random events, one a millisecond, always the same."""
        rng = np.random.default_rng(1)
        types = pa.array(rng.choice(np.array(list(self.types)), events, p=self.shares)).dictionary_encode()
        ids, values = rng.integers(0, self.keys, events), rng.integers(0, 1_000, events)
        return pa.table({"at": np.arange(events), "type": types, "id": ids, "v": values})


_ITERATION = "SELECT x.v AS low, COUNT(y) AS n FROM S WHERE A AS x : (B AS y):+ : C AS z"
_RECOGNIZE = (
    "select * from E match_recognize (measures A.v as low, count(B.v) as n pattern (A B+ C) "
    "define A as A.type = 'A', B as B.type = 'B', C as C.type = 'C'"
)
_COMMON = ("ABC", (0.1, 0.6, 0.3))

CASES = (
    Case(
        "sequence", 500, "SELECT x.v AS low, COUNT(y) AS n FROM S WHERE A AS x ; B AS y ; C",
        "select a.v as low, 1 as n from pattern [every a=E(type='A') -> "
        "(every b=E(type='B') -> every c=E(type='C')) where timer:within(500 milliseconds)]",
        "ABCD", (0.02, 0.02, 0.02, 0.94),
    ),
    Case("iteration", 100, _ITERATION, f"{_RECOGNIZE})", *_COMMON),
    Case("AVG", 100, f"{_ITERATION} FILTER z[v > AVG(y.v)]", f"{_RECOGNIZE} and C.v > B.average(x => x.v))", *_COMMON),
    Case("COUNT", 100, f"{_ITERATION} FILTER COUNT(y) >= 5", f"{_RECOGNIZE} and B.countOf() >= 5)", *_COMMON),
    Case(
        "absence", 1_000, "SELECT x.v AS low FROM S WHERE A AS x ; NOT B PARTITION BY [id]",
        "select a.v as low, 0 as n from pattern [every a=E(type='A') -> "
        "(timer:interval(1000 milliseconds) and not E(type='B', id=a.id))]",
        "AB", (0.7, 0.3), keys=1_000,
    ),
)  # fmt: skip
