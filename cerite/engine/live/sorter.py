"""Events that arrive in any order, passed on in the order of the stream: S&P of the dataflow paper (DEBS 2024).

The watermark is the greatest time seen less the delay, and never decreases. Events before it are *ready*: no event that
would precede them is still waited for. Events at it or after it are *pending*, because one of the same instant may
still come, and ties are broken as in data at rest. An event that arrives behind the watermark is *late*: it is set
aside, never sorted in. The events of one batch are not late because of each other.

Pending events lie in sorted runs; small runs are merged into larger ones, so that an event costs the logarithm of the
events pending, however small the batches are.

Invariants: what is ready, in all batches together, is in the order (time, ties, arrival); every event offered is ready
once, pending, late, a duplicate, or without a time. An offer that is not accepted has changed nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Arrays, Flags, Longs
from cerite.core.errors import Setting, StreamError, unsortable
from cerite.engine.events.batches import joined, merging, packed, unpacked
from cerite.engine.events.clock import Clock
from cerite.engine.events.ids import Ids
from cerite.engine.events.keys import LEAST
from cerite.engine.events.order import equal_to_next, tied
from cerite.predicate.columns.read import decoded


@dataclass(frozen=True)
class Ordering:
    """How events are put in order: by `time`, then `ties`, then arrival.

    `delay`, in ticks of the time column, is how far an event may lie behind the greatest time seen; None says that
    events come in order already. Of events that are equal in the columns `deduplicate`, the first to arrive counts.
    Where arrival means nothing, because events may be read again in another order, `strict` refuses two that are equal
    in time and ties.
    """

    time: str | None = None
    ties: tuple[str, ...] = ()
    delay: Fraction | None = None
    deduplicate: tuple[str, ...] = ()
    strict: bool = False

    def __post_init__(self) -> None:
        if self.delay is None and (self.ties or self.deduplicate):
            raise StreamError("events that come in order already are not sorted, and their ids not kept")
        if self.delay is not None and (self.time is None or self.delay < 0):
            raise StreamError("a watermark needs a time column, and a delay that is not negative")


@dataclass(frozen=True)
class Waiting:
    """Some events in order: their time keys, their numbers in the order of arrival, their rows."""

    keys: Longs
    arrival: Longs
    rows: pa.RecordBatch

    def cut(self, watermark: int) -> tuple[Waiting, Waiting]:
        """The events before the watermark, and the others."""
        at = int(np.searchsorted(self.keys, watermark))
        return self._part(0, at), self._part(at, self.keys.size)

    def _part(self, begin: int, stop: int) -> Waiting:
        return Waiting(self.keys[begin:stop], self.arrival[begin:stop], self.rows.slice(begin, stop - begin))


@dataclass(frozen=True)
class Aside:
    """Events of a batch that are not sorted in: late ones, or those without a time."""

    rows: pa.RecordBatch
    keys: Longs
    untimed: Flags

    @property
    def late(self) -> int:
        """How many of them are late."""
        return int(self.untimed.size - self.untimed.sum())


@dataclass(frozen=True)
class Offer:
    """What a batch or a watermark would bring; nothing has changed before it is accepted."""

    watermark: int
    seen: int
    ready: pa.RecordBatch | None
    pending: list[Waiting]
    arrived: int
    aside: Aside | None = None
    twice: pa.RecordBatch | None = None  # events of the batch that are duplicates
    ids: Longs | None = None  # the time keys of new ids
    known: dict[str, int | None] | None = None  # what the numbering of ids knew before


class Sorter:
    """The events of one stream that the watermark has not passed."""

    def __init__(self, ordering: Ordering, clock: Clock) -> None:
        assert ordering.delay is not None
        self.ordering = ordering
        self.clock = clock
        self.delay = ordering.delay
        self.watermark = LEAST  # nothing is known to be over
        self.seen = LEAST
        self._runs: list[Waiting] = []
        self._arrived = 0
        self._ids = Ids(ordering.deduplicate) if ordering.deduplicate else None

    @property
    def pending(self) -> int:
        """How many events are pending."""
        return sum(run.keys.size for run in self._runs)

    @property
    def ids(self) -> int:
        """How many ids are known."""
        return 0 if self._ids is None else len(self._ids)

    def offer(self, batch: pa.RecordBatch, seen: int | None = None) -> Offer:
        """What the next batch would bring; `seen` is a time that is known from elsewhere to have been seen."""
        keys, missing = self.clock.keys(batch.column(self.ordering.time))
        top = self.seen if seen is None else max(self.seen, seen)
        aside, twice, ids, known = None, None, None, None
        if keys.size:
            timed = keys if missing is None else keys[~missing]
            top = max(top, int(timed.max())) if timed.size else top
            out = keys < self.watermark if missing is None else missing | (keys < self.watermark)
            if out.any():
                untimed = np.zeros(keys.size, np.bool_) if missing is None else missing
                where = np.flatnonzero(out)
                aside = Aside(batch.take(pa.array(where)), keys[where], untimed[where])
                keys, batch = _rest(keys, batch, ~out)
            if self._ids is not None:
                known = self._ids.known
                new, ids = self._ids.look(keys, batch)
                if not new.all():
                    twice = batch.filter(pa.array(~new))
                    keys, batch = _rest(keys, batch, new)
        arrival = np.arange(self._arrived, self._arrived + keys.size)
        fresh = Waiting(keys, arrival, batch) if keys.size else None
        passed = self._passed(self._moved(top), fresh)
        arrived = self._arrived + keys.size
        return replace(passed, seen=top, arrived=arrived, aside=aside, twice=twice, ids=ids, known=known)

    def advanced(self, watermark: int) -> Offer:
        """What is ready once nothing before this time will come any more."""
        return self._passed(max(self.watermark, watermark), None)

    def closed(self) -> Offer:
        """Everything that is pending, because nothing more will come."""
        rows = self._sorted(_together(self._runs)).rows if self._runs else None
        return Offer(self.watermark, self.seen, rows, [], self._arrived)

    def check_ties(self, ready: pa.RecordBatch) -> None:
        """Refuse events that only their arrival tells apart; events of one instant are all ready at once."""
        names = (str(self.ordering.time), *self.ordering.ties)
        if not self.ordering.strict or ready.num_rows < 2:
            return
        same = np.ones(ready.num_rows - 1, np.bool_)
        for column in map(ready.column, names):
            same &= equal_to_next(column)
            if not same.any():
                return
        columns = {name: ready.column(name) for name in names}
        raise tied(columns, int(np.argmax(same)), ", or drop what comes twice: ", Setting("deduplicate"))

    def accept(self, offer: Offer) -> None:
        """Go on as the offer says."""
        self.watermark, self.seen, self._arrived = offer.watermark, offer.seen, offer.arrived
        self._runs = offer.pending
        if self._ids is not None and offer.ids is not None:
            self._ids.add(offer.ids, self.watermark)

    def withdraw(self, offer: Offer) -> None:
        """Forget the offer."""
        if self._ids is not None and offer.known is not None:
            self._ids.forget(offer.known)

    def state(self) -> Arrays:
        """What a snapshot keeps: pending events in order, numbered anew by arrival."""
        state: Arrays = {"sorter": np.array([self.watermark, self.seen])}
        if self._runs:
            whole = self._sorted(_together(self._runs))
            self._runs, self._arrived = [whole], whole.keys.size
            rank = np.empty(whole.keys.size, np.int64)
            rank[np.argsort(whole.arrival)] = np.arange(whole.keys.size)
            self._runs = [replace(whole, arrival=rank)]
            state |= {"arrival": rank, "pending": packed(whole.rows)}
        if self._ids is not None:
            state |= {f"ids.{name}": value for name, value in self._ids.state(self.watermark).items()}
        return state

    def restore(self, state: Arrays) -> None:
        """Continue where a snapshot was taken."""
        self.watermark, self.seen = state["sorter"].tolist()
        if "pending" in state:
            rows = unpacked(state["pending"].view(np.uint8))
            keys, _ = self.clock.keys(rows.column(self.ordering.time))
            self._runs, self._arrived = [Waiting(keys, state["arrival"].astype(np.int64), rows)], keys.size
        if self._ids is not None:
            prefix = "ids."
            mine = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
            self._ids.restore(mine)

    def _moved(self, seen: int) -> int:
        """The watermark if this is the greatest time seen."""
        return self.watermark if seen == LEAST else max(self.watermark, self.clock.before(seen, self.delay))

    def _passed(self, watermark: int, fresh: Waiting | None) -> Offer:
        """The events that a watermark passes, in order, and those left."""
        ready, pending = [], []
        for run in self._runs:
            if run.keys[0] >= watermark:
                pending.append(run)
            elif run.keys[-1] < watermark:
                ready.append(run)
            else:
                before, after = run.cut(watermark)
                ready.append(before)
                pending.append(after)
        rows = None
        if fresh is not None or ready:  # sorted together and then cut: every row is moved once
            before, after = self._sorted(_together(ready if fresh is None else [*ready, fresh])).cut(watermark)
            rows = before.rows
            if after.keys.size:
                pending = self._merged([*pending, after])
        return Offer(watermark, self.seen, rows, pending, self._arrived)

    def _merged(self, runs: list[Waiting]) -> list[Waiting]:
        runs.sort(key=lambda run: -run.keys.size)
        first = merging([run.keys.size for run in runs])
        return runs if first is None else [*runs[:first], self._sorted(_together(runs[first:]))]

    def _sorted(self, events: Waiting) -> Waiting:
        """The events in the order of the stream."""
        order = _order(events, self.ordering.ties)
        if order is None:
            return events
        return Waiting(events.keys[order], events.arrival[order], events.rows.take(pa.array(order)))


def _rest(keys: Longs, batch: pa.RecordBatch, which: Flags) -> tuple[Longs, pa.RecordBatch]:
    return keys[which], batch.filter(pa.array(which))


def _together(runs: Sequence[Waiting]) -> Waiting:
    if len(runs) == 1:
        return runs[0]
    keys, arrival = (np.concatenate([getattr(run, name) for run in runs]) for name in ("keys", "arrival"))
    return Waiting(keys, arrival, joined([run.rows for run in runs]))


def _order(events: Waiting, ties: tuple[str, ...]) -> Longs | None:
    """The places of the events in the order of the stream; None if they are in order."""
    keys, arrival = events.keys, events.arrival
    rising = keys[1:] > keys[:-1]
    if rising.all():
        return None
    if not ties:
        rising |= (keys[1:] == keys[:-1]) & (arrival[1:] > arrival[:-1])
        if rising.all():
            return None
        order = np.argsort(keys, kind="stable")
        keys, arrival = keys[order], arrival[order]
        swapped = (keys[1:] == keys[:-1]) & (arrival[1:] < arrival[:-1])
        return np.lexsort((events.arrival, events.keys)) if swapped.any() else order
    columns = {name: events.rows.column(name) for name in ties}
    plain = [decoded(each) for each in columns.values()]
    names = [f"{k}" for k in range(len(plain) + 2)]
    table = pa.table([pa.array(keys), *plain, pa.array(arrival)], names)
    try:
        sorted_: Longs = pc.sort_indices(table, [(name, "ascending") for name in names]).to_numpy().astype(np.int64)
    except pa.ArrowException as error:
        raise unsortable({name: column.type for name, column in columns.items()}, error) from error
    return sorted_
