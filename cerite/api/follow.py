"""A stream that follows a source: it pushes every batch that comes, and yields the matches of each push.

Invariant: a batch is taken from the source only when its matches are requested, so that a slow reader slows the source
down, and nothing piles up in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from cerite.api.pushed import Pushed
from cerite.core.errors import StreamError


class Following:
    """The matches in what a source brings, push by push; iterate with `for` or `async for`."""

    def __init__(self, push: Callable[[Any], Pushed], close: Callable[[], Pushed] | None, source: Any) -> None:
        if not isinstance(source, (AsyncIterable, Iterable)) or isinstance(source, (str, bytes, dict)):
            raise StreamError(
                f"a stream cannot follow a {type(source).__name__}",
                hint="follow something that gives batches: a list, a generator, an asynchronous generator",
            )
        self._push, self._close, self._source = push, close, source

    def __iter__(self) -> Iterator[Pushed]:
        if not isinstance(self._source, Iterable):
            raise StreamError("the source is asynchronous", hint="read it with `async for matches in …`")
        for batch in self._source:
            yield self._push(batch)
        if self._close is not None:
            yield self._close()

    async def __aiter__(self) -> AsyncIterator[Pushed]:
        if isinstance(self._source, AsyncIterable):
            async for batch in self._source:
                yield self._push(batch)
        else:
            for batch in self._source:
                yield self._push(batch)
                await asyncio.sleep(0)  # others run meanwhile
        if self._close is not None:
            yield self._close()
