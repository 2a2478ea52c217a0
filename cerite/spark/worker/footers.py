"""Parquet footers: where the rows of every row group lie in time, without reading a row.

Invariant: where there is no `disorder`, no group has a time before the greatest time of any group ahead of it; so the
rows of any stretch of time lie in neighbouring groups, and their order is the order of files and rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame
from pyspark.sql import types as ty

from cerite.core.errors import StreamError
from cerite.core.rejected import Rejected
from cerite.engine.events.keys import numbers

Number = Any  # int or float: what `keys.numbers` gives
MOST_FILES = 4096
AT_ONCE = 16  # footers read at the same time: for remote files, most of that is waiting


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
    """The row groups of some files, by the clock `clock`, and the files' common schema."""

    files: tuple[str, ...]
    schema: pa.Schema
    groups: tuple[Group, ...]
    clock: str

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(group.rows for group in self.groups)

    @property
    def disorder(self) -> Rejected | None:
        """What keeps the rows from being in order of the clock."""
        for before, after in pairwise(self.groups):
            if after.least < before.greatest:
                return Rejected(f"row groups overlap in `{self.clock}`")
            if after.least == before.greatest and (after.file, after.index) < (before.file, before.index):
                return Rejected(f"files that touch in `{self.clock}` are not in the order of their names")
        return None

    def quantiles(self, count: int) -> tuple[Number, ...]:
        """`count` quantiles of the clock, the least first, as if it rose evenly inside every row group."""
        if not self.groups:
            return ()
        each = max(1, -(-4 * count // len(self.groups)))
        spans = [np.linspace(group.least, group.greatest, each, endpoint=False) for group in self.groups]
        points = np.concatenate(spans)
        order = np.argsort(points, kind="stable")
        before = np.cumsum(np.repeat([group.rows / each for group in self.groups], each)[order])
        wanted = np.searchsorted(before, np.arange(count) * before[-1] / count, side="right")
        values = points[order][np.minimum(wanted, points.size - 1)].tolist()
        return tuple(map(type(self.groups[0].least), values))


def opened(uri: str) -> pq.ParquetFile:
    """A Parquet file by Spark's name for it."""
    system, path = located(uri)
    return pq.ParquetFile(path, filesystem=system, pre_buffer=False)


def located(uri: str) -> tuple[fs.FileSystem, str]:
    """File system and path of a file; local names come with escapes and without a host."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return fs.LocalFileSystem(), unquote(parts.path)
    place: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    return place


def footers(uris: Sequence[str], clock: str) -> Footers | Rejected:
    """The footers of some files, or why they say nothing about the clock."""
    files = tuple(sorted(uris))
    if len(files) > MOST_FILES:
        return Rejected(f"there are {len(files):,} files; the footers of at most {MOST_FILES:,} are read")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        read = list(pool.map(_metadata, files))
    schema: pa.Schema | None = None
    groups: list[Group] = []
    for number, metadata in enumerate(read):
        if isinstance(metadata, Rejected):
            return metadata
        if converted := _converted_times(metadata):
            return converted
        mine = metadata.schema.to_arrow_schema()
        if schema is not None and not mine.equals(schema):
            return Rejected("the files have different columns")
        schema = mine
        own = _groups(metadata, number, clock)
        if isinstance(own, Rejected):
            return own
        groups += own
    if schema is None:
        return Rejected("there are no files")
    groups = [group for group in groups if group.rows]
    groups.sort(key=lambda group: (group.least, group.greatest, group.file, group.index))
    return Footers(files, schema.remove_metadata(), tuple(groups), clock)


def _metadata(uri: str) -> pq.FileMetaData | Rejected:
    try:
        with opened(uri) as file:
            return file.metadata
    except (OSError, pa.ArrowException, ValueError) as error:
        return Rejected(f"{uri} cannot be read here: {error}")


_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


def _converted_times(metadata: pq.FileMetaData) -> Rejected | None:
    """That Spark converts the dates and times of a file, which were written in the calendar of its versions 1 and 2."""
    said = metadata.metadata or {}
    version = said.get(b"org.apache.spark.version", b"3")
    if version[:2] not in (b"1.", b"2.") and not any(name in said for name in _LEGACY):
        return None
    return Rejected("Spark converts the dates and times of the files, which are in its legacy calendar")


def _groups(metadata: pq.FileMetaData, file: int, clock: str) -> list[Group] | Rejected:
    names = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    columns = metadata.schema.to_arrow_schema()
    if clock not in names or clock not in columns.names:
        return Rejected(f"a file has no column `{clock}`" if clock not in names else f"`{clock}` is inside a struct")
    place, kind = names.index(clock), columns.field(clock).type
    groups: list[Group] = []
    first = 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        statistics = group.column(place).statistics
        if statistics is None or not statistics.has_min_max or statistics.null_count:
            return Rejected(f"row groups have no statistics of `{clock}`, or NULLs")
        try:
            ends, missing = numbers(pa.array([statistics.min, statistics.max]).cast(kind), clock)
        except StreamError as error:
            return Rejected(str(error))
        if missing is not None:
            return Rejected(f"`{clock}` holds values that are not numbers")
        groups.append(Group(file, index, group.num_rows, first, ends[0].item(), ends[1].item()))
        first += group.num_rows
    return groups


# Whether a DataFrame is nothing but a scan of Parquet files, and whether Spark reads a column as the file has it.


def scan_obstacle(df: DataFrame) -> Rejected | None:
    """Why the DataFrame is not just a scan of Parquet files."""
    plan = getattr(df, "_plan", None)
    if plan is not None:  # Spark Connect
        plain = type(plan).__name__ == "DataSource" and getattr(plan, "_format", None) == "parquet"
        if not plain or getattr(plan, "_schema", None):
            return Rejected("the DataFrame is not a plain scan of Parquet")
        return _repeated(getattr(plan, "_paths", None) or ())
    analyzed = df._jdf.queryExecution().analyzed()
    if analyzed.getClass().getSimpleName() != "LogicalRelation":
        return Rejected("the DataFrame is not a plain scan of files")
    relation = analyzed.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return Rejected("the DataFrame is not a plain scan of files")
    if relation.fileFormat().getClass().getSimpleName() != "ParquetFileFormat":
        return Rejected("the files are not Parquet")
    if relation.partitionSchema().size():
        return Rejected("the files are in partition folders")
    return _repeated([*relation.location().inputFiles()])  # DataFrame.inputFiles() leaves out the second time


def _repeated(files: Sequence[str]) -> Rejected | None:
    """That rows occur more than once: a path was named twice, or is in a folder that was named, too."""
    return Rejected("the DataFrame reads a file more than once") if len(set(files)) < len(files) else None


_ARROW: dict[type[ty.DataType], pa.DataType] = {
    ty.LongType: pa.int64(), ty.IntegerType: pa.int32(), ty.ShortType: pa.int16(), ty.ByteType: pa.int8(),
    ty.DoubleType: pa.float64(), ty.FloatType: pa.float32(), ty.BooleanType: pa.bool_(), ty.BinaryType: pa.binary(),
    ty.DateType: pa.date32(),
}  # fmt: skip


def foreign_type(footers: Footers, name: str, spark: ty.DataType) -> Rejected | None:
    """That the files do not have this column as Spark reads it."""
    if name in footers.schema.names and _same_type(footers.schema.field(name).type, spark):
        return None
    return Rejected(f"Spark reads column `{name}` in another type than the file has")


def _same_type(arrow: pa.DataType, spark: ty.DataType) -> bool:
    """Whether a column has the same type in the file as in Spark."""
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if type(spark) is ty.StringType:
        return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow))
    if isinstance(spark, ty.DecimalType):
        return bool(pa.types.is_decimal128(arrow)) and (arrow.precision, arrow.scale) == (spark.precision, spark.scale)
    if isinstance(spark, (ty.TimestampType, ty.TimestampNTZType)):
        zoned = isinstance(spark, ty.TimestampType)
        return bool(pa.types.is_timestamp(arrow)) and arrow.unit == "us" and (arrow.tz is not None) == zoned
    return bool(_ARROW.get(type(spark)) == arrow)
