"""The engine as f_C of T-CER and as f_M of R-CER: `m, Φ ← f(m, t)` with a Cerite query inside.

Both give a `Recognised` for every match at the tuple that completes it. Invariant (judged by `cerite.matches`): behind
S&P, T-CER and R-CER report the query's matches in the stream sorted by event time, each exactly once.
"""

from __future__ import annotations

import pyarrow as pa

from cerite.dataflow.recognition import Recognised, Recognition, Saved
from cerite.dataflow.streams import StreamTuple
from cerite.engine.intake import Columns
from cerite.engine.plan import Semantics
from cerite.errors import Hint, PatternError, Setting, StreamError
from cerite.language.builder import Builder
from cerite.pattern.base import Pattern
from cerite.pattern.query import Query
from cerite.prepare import fitted
from cerite.run import RunnableQuery, query

AnyQuery = RunnableQuery | str | Query | Builder | Pattern


class QueryFunction:
    """A query made ready. `schema` has the columns it looks at; τ, in milliseconds, fills the column `time`."""

    def __init__(
        self,
        asked: AnyQuery,
        schema: pa.Schema,
        *,
        time: str = "time",
        type: str | None = None,
        position: str | None = None,
        semantics: Semantics = "valuations",
    ) -> None:
        runnable = asked if isinstance(asked, RunnableQuery) else query(asked)
        self.query = runnable.query
        self.plan = runnable.plan(semantics)
        self._schema = _completed(schema, time, position)
        self._columns = fitted(self.query, self.plan, Columns(type, time, position), self._schema)
        self._check()
        self._recognition()  # what the engine refuses is told now

    def _check(self) -> None:
        """Refuse what the operator cannot run."""

    def _recognition(self, saved: Saved | None = None) -> Recognition:
        return Recognition(self.plan, self._schema, self._columns, saved)


class QueryRule(QueryFunction):
    """f_M: any query that the engine runs. The state carried forward is a snapshot of the engine, a plain value."""

    def __call__(self, state: Saved | None, t: StreamTuple) -> tuple[Saved, list[Recognised]]:
        """The state after this tuple, and what the tuple completes."""
        running = self._recognition(state)
        found = running.take(t)
        return running.saved(), found


class QueryCondition(QueryFunction):
    """f_C: a query with a time window. The state is the running engine, which never leaves its chunk.

    A chunk knows nothing of what was before it, so consumption, which depends on all that was, is refused. Selection
    strategies and LIMIT are exact: a match is reported by a chunk that contains its whole window.
    """

    @property
    def duration(self) -> int:
        """D = ε + δ: the paper's bound is exclusive, a query's window inclusive; δ is a millisecond."""
        return self._window + 1

    def __call__(self, state: Recognition | None, t: StreamTuple) -> tuple[Recognition, list[Recognised]]:
        """The running query, and what the tuple completes."""
        running = self._recognition() if state is None else state
        return running, running.take(t, self._window)

    def _check(self) -> None:
        if self.plan.consume != "none":
            raise PatternError(
                "T-CER does not run CONSUME BY: what is consumed depends on all that was before",
                hint="run the query as a QueryRule in R-CER",
            )
        if self.plan.window is None or not self.plan.window.is_time:
            raise PatternError(
                "T-CER runs queries with a time window, and this one has none",
                hint="add WITHIN … seconds, or run the query as a QueryRule in R-CER",
            )
        self._window = int(self.plan.window.width)


def _completed(schema: pa.Schema, time: str, position: str | None) -> pa.Schema:
    """The schema with columns for event time and positions."""
    for name in (time, position):
        if name is not None and name not in schema.names:
            schema = schema.append(pa.field(name, pa.int64()))
    kind = schema.field(time).type
    if kind != pa.int64():
        raise StreamError(
            f"the column `{time}` holds {kind}, but event time is filled in as whole milliseconds",
            hint=Hint("declare it int64, or name another column: ", Setting("time")),
        )
    return schema
