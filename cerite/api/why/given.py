"""The arguments of `why` and `why_not`: a match and its data, or events by row number, as rows, or as a frame."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cerite.api.batch import BatchMatches
from cerite.api.inputs import READ_ONCE, Prepared
from cerite.api.why.scene import Ranks, Scene
from cerite.core.errors import ArgumentError, StreamError
from cerite.core.match import Match
from cerite.data.open import opened
from cerite.data.reading import Reading
from cerite.pattern.query import QuerySpec

_POSITIONS = "give the numbers of its rows: events=[3, 7, 9]"


def scene_of(query: QuerySpec, match: Any, prepared: Prepared | None = None) -> Scene:
    """The data that a match was found in: the data that is given, or else the data that the match knows."""
    if not isinstance(match, Match):
        raise ArgumentError(
            f"`why` explains a match, not {match!r}",
            hint="take one of query.run(…), e.g. matches[0]; for events that are not a match use why_not",
        )
    if not match.positions:
        raise ArgumentError(f"{match} shows no event", hint="SELECT what the match binds")
    if prepared is not None:
        return Scene(query, prepared)
    owner = getattr(match.fetch, "__self__", None)
    if not isinstance(owner, BatchMatches) or isinstance(owner.prepared.source, READ_ONCE):
        raise StreamError(
            "this match does not know its data, or the data can be read only once",
            hint="pass the data as well: query.why(match, data, time=…)",
        )
    return Scene(query, owner.prepared)


def ranks_of(scene: Scene, events: Any) -> Ranks:
    """The events that should have been a match, in stream order."""
    if events is None:
        ranks = list(range(scene.rows))
    elif isinstance(events, Match):
        ranks = [scene.rank(position) for position in events.positions]
    elif isinstance(events, (str, bytes)) or (isinstance(events, Mapping) and not events):
        raise ArgumentError(f"`events` are rows, not {events!r}", hint=_POSITIONS)
    else:
        ranks = _given(scene, events)
    if not ranks:
        raise ArgumentError("no event is given", hint=_POSITIONS)
    if len(set(ranks)) < len(ranks):
        raise ArgumentError("an event is given twice, but a match has it only once", hint=_POSITIONS)
    return tuple(sorted(ranks))


def _given(scene: Scene, events: Any) -> list[int]:
    if isinstance(events, Mapping):
        events = [events]
    if hasattr(events, "__arrow_c_stream__") or hasattr(events, "columns") or isinstance(events, pa.RecordBatch):
        events = opened(events, Reading()).table().to_pylist()
    try:
        listed = list(events)
    except TypeError:
        raise ArgumentError(f"`events` are rows, not {events!r}", hint=_POSITIONS) from None
    if all(isinstance(each, Mapping) for each in listed):
        return _ranks_of(scene, listed)
    try:
        return [scene.rank(operator.index(each)) for each in listed]
    except TypeError:
        raise ArgumentError(f"`events` are row numbers or rows, not {listed!r}", hint=_POSITIONS) from None


def _ranks_of(scene: Scene, rows: list[Mapping[str, Any]]) -> list[int]:
    """The events that have these values, each in one place of the data."""
    data = scene.all_rows()
    ranks: list[int] = []
    for row in rows:
        places = [rank for rank, each in enumerate(data) if all(_same(each.get(name), row[name]) for name in row)]
        new = [rank for rank in places if rank not in ranks]
        wanted = sum(all(_same(other.get(name), row[name]) for name in row) for other in rows)
        if not new:
            raise ArgumentError(f"the data has no event {dict(row)!r}", hint=_POSITIONS)
        if len(places) > wanted:
            raise ArgumentError(
                f"the data has {len(places)} events like {dict(row)!r}", hint=f"say which are meant, or {_POSITIONS}"
            )
        ranks.append(new[0])
    return ranks


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (one is None and other is None) or (one != one and other != other)
