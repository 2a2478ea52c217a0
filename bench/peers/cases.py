"""The queries that other engines have as well, each as Cerite and as the others write it, with the stream it runs on.

FlinkCEP has no text: src/FlinkPeer.java builds the pattern of each case. Every engine gives two measures of a match,
the value of its first event and how many events its iteration holds, so that more than the number of matches is
compared; Wayeb gives the number only. Windows of the peers are exclusive, ours are inclusive: theirs of 100
milliseconds is ours of 99. What an engine has no words for is None.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Case:
    """A query: its window in milliseconds, every engine's words, and the types of its events and their shares.

    `core` is what stands between WHERE and WITHIN, `wayeb` what stands before the window; both name types by a letter.
    """

    name: str
    window: int
    cerite: str
    types: str
    shares: tuple[float, ...]
    esper: str | None = None
    core: str | None = None
    wayeb: str | None = None
    keys: int = 10

    @property
    def query(self) -> str:
        """As Cerite runs it."""
        return f"{self.cerite} WITHIN {self.window - 1} milliseconds"

    @property
    def core_query(self) -> str | None:
        """As CORE runs it, in C++ and, without `:`, in Java, which consumes by ANY unless it is told otherwise."""
        if self.core is None:
            return None
        return f"SELECT * FROM S WHERE ({self.core}) WITHIN {self.window} [at] CONSUME BY NONE"

    @property
    def wayeb_pattern(self) -> str | None:
        """As Wayeb runs it; a type is written as the predicate that Wayeb has for it."""
        if self.wayeb is None:
            return None
        types = {letter: f"IsEventTypePredicate({letter})" for letter in self.types}
        words = "".join(types.get(letter, letter) for letter in self.wayeb)
        return words.replace("above", "GTAttr") + f"{{window:{self.window}}}{{windowType:time}}"

    def stream(self, events: int) -> pa.Table:
        """Random events, one a millisecond, always the same."""
        rng = np.random.default_rng(1)
        types = pa.array(rng.choice(np.array(list(self.types)), events, p=self.shares)).dictionary_encode()
        ids, values = rng.integers(0, self.keys, events), rng.integers(0, 1_000, events)
        return pa.table({"at": np.arange(events), "type": types, "id": ids, "v": values})


_MEASURES = "SELECT x.v AS low, COUNT(y) AS n FROM S WHERE"
_ITERATION = f"{_MEASURES} A AS x : (B AS y):+ : C AS z"
_RECOGNIZE = (
    "select * from E match_recognize (measures A.v as low, count(B.v) as n pattern (A B+ C) "
    "define A as A.type = 'A', B as B.type = 'B', C as C.type = 'C'"
)
_RARE = ("ABCD", (0.02, 0.02, 0.02, 0.94))
_COMMON = ("ABC", (0.1, 0.6, 0.3))


def _followed(last: str) -> str:
    """All combinations of A, B and a last event within half a second, as Esper writes them."""
    return (
        "select a.v as low, 1 as n from pattern [every a=E(type='A') -> "
        f"(every b=E(type='B') -> every c=E({last})) where timer:within(500 milliseconds)]"
    )


CASES = (
    Case(
        "sequence", 500, f"{_MEASURES} A AS x ; B AS y ; C", *_RARE,
        esper=_followed("type='C'"), core="A ; B ; C", wayeb="#(;(A,B,C))",
    ),
    Case(
        "comparison", 500, f"{_MEASURES} A AS x ; B AS y ; C AS z FILTER z[v > x.v]", *_RARE,
        esper=_followed("type='C', v > a.v"), wayeb='#(;(A["x"],B,^(C,above(v,"x"))))',
    ),
    Case(
        "combinations", 200, f"{_MEASURES} A AS x ; (B AS y)+ ; C", *_RARE,
        core="A ; B+ ; C", wayeb="#(;(A,B,#(*(B)),C))",
    ),
    Case(
        "iteration", 100, _ITERATION, *_COMMON,
        esper=f"{_RECOGNIZE})", core="A : B:+ : C", wayeb=";(A,B,*(B),C)",
    ),
    Case(
        "AVG", 100, f"{_ITERATION} FILTER z[v > AVG(y.v)]", *_COMMON,
        esper=f"{_RECOGNIZE} and C.v > B.average(x => x.v))",
    ),
    Case(
        "COUNT", 100, f"{_ITERATION} FILTER COUNT(y) >= 5", *_COMMON,
        esper=f"{_RECOGNIZE} and B.countOf() >= 5)", core="A : B : B : B : B : B:+ : C",
        wayeb=";(A,B,B,B,B,B,*(B),C)",
    ),
    Case(
        "absence", 1_000, "SELECT x.v AS low FROM S WHERE A AS x ; NOT B PARTITION BY [id]", "AB", (0.7, 0.3),
        esper="select a.v as low, 0 as n from pattern [every a=E(type='A') -> "
        "(timer:interval(1000 milliseconds) and not E(type='B', id=a.id))]",
        keys=1_000,
    ),
)  # fmt: skip
