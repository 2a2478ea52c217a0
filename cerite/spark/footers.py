"""Parquet footers: where the rows of every row group lie in time, without reading a row.

Invariant: a `Groups` in order has, for every group, no time before the greatest time of any group ahead of it; so the
rows of any stretch of time lie in neighbouring groups, and their order is the order of files and rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from cerite.engine.keys import numbers

Number = Any  # int or float: what `keys.numbers` gives


@dataclass(frozen=True)
class Group:
    """A row group: its file (by number), its place there, its rows, and its least and greatest tick."""

    file: int
    index: int
    rows: int
    first_row: int
    least: Number
    greatest: Number


@dataclass(frozen=True)
class Footers:
    """The row groups of some files, in the order of the stream, and the files' common schema."""

    files: tuple[str, ...]
    schema: pa.Schema
    groups: tuple[Group, ...]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(group.rows for group in self.groups)


def opened(uri: str) -> pq.ParquetFile:
    """A Parquet file by Spark's name for it."""
    system, path = located(uri)
    return pq.ParquetFile(path, filesystem=system, pre_buffer=False)


def located(uri: str) -> tuple[fs.FileSystem, str]:
    """File system and path of a file; local names come with escapes and without a host."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return fs.LocalFileSystem(), unquote(parts.path)
    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    return found


def footers_in_order(uris: Sequence[str], clock: str) -> Footers | str:
    """The footers if they show that the data is in order of the clock, else what is in the way."""
    files = tuple(sorted(uris))
    schema: pa.Schema | None = None
    groups: list[Group] = []
    for number, uri in enumerate(files):
        try:
            metadata = opened(uri).metadata
        except (OSError, pa.ArrowException, ValueError) as error:
            return f"{uri} cannot be read here: {error}"
        mine = metadata.schema.to_arrow_schema()
        if schema is not None and not mine.equals(schema):
            return "the files have different columns"
        schema = mine
        found = _groups(metadata, number, clock)
        if isinstance(found, str):
            return found
        groups += found
    if schema is None:
        return "there are no files"
    groups = [group for group in groups if group.rows]
    groups.sort(key=lambda group: (group.least, group.greatest, group.file, group.index))
    for before, after in pairwise(groups):
        if after.least < before.greatest:
            return f"row groups overlap in `{clock}`"
        if after.least == before.greatest and (after.file, after.index) < (before.file, before.index):
            return f"files that touch in `{clock}` are not in the order of their names"
    return Footers(files, schema.remove_metadata(), tuple(groups))


def _groups(metadata: pq.FileMetaData, file: int, clock: str) -> list[Group] | str:
    names = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    if clock not in names:
        return f"a file has no column `{clock}`"
    place, kind = names.index(clock), metadata.schema.to_arrow_schema().field(clock).type
    found: list[Group] = []
    first = 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        statistics = group.column(place).statistics
        if statistics is None or not statistics.has_min_max or statistics.null_count:
            return f"row groups have no statistics of `{clock}`, or NULLs"
        ends, missing = numbers(pa.array([statistics.min, statistics.max]).cast(kind), clock)
        if missing is not None:
            return f"`{clock}` holds values that are no numbers"
        found.append(Group(file, index, group.num_rows, first, ends[0].item(), ends[1].item()))
        first += group.num_rows
    return found
