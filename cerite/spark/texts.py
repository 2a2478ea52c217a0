"""Text on Spark: CSV read with the rules of `cerite.data`, and columns of text from somebody else's reader.

Spark's own inference turns a column into text because of one `NA`, and reads `007` as the number 7. Here everything is
read as text, one look at the data tells what each column is, and columns are cast. Invariant: the kinds are those that
`open_events` gives the same files; what is declared is never guessed. Spark does not tell quoted values from others:
`"NULL"` is missing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from cerite.core.schema import Kind
from cerite.data.guesses import ABSENT, MISSING, PADDED, SHAPES, SIGHTS, WHOLE, ZONE
from cerite.data.reading import Reading, refusal
from cerite.data.source import Sight

TEXTS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".txt")
_PACKED = (".gz", ".bz2", ".zst")
_FILE = "cerite_file"
_CAST = {"int": "bigint", "float": "double", "bool": "boolean", "string": "string"}


def read_csv(session: SparkSession, path: str, delimiter: str, reading: Reading) -> DataFrame:
    """A CSV file, folder or glob as typed columns."""
    options = {"header": "true", "sep": reading.delimiter or delimiter, "escape": '"', "inferSchema": "false"}
    raw = session.read.options(**options).csv(path)
    names = raw.columns
    df = raw.toDF(*(f"c{at}" for at in range(len(names))))
    looks: list[Column] = []
    for at, name in enumerate(names):
        looks.append(_look(_missing(fn.col(f"c{at}"), (*MISSING, *reading.null_values)), reading.kinds.get(name)))
    (row,) = _with_file(df).select(*(each.alias(f"c{at}") for at, each in enumerate(looks))).collect()
    columns = []
    for at, name in enumerate(names):
        kind = reading.kinds.get(name)
        seen = row[f"c{at}"]
        if kind is not None and seen["misfit"] is not None:
            raise refusal(_file(seen["misfit"]["file"]), name, seen["misfit"]["value"], kind)
        own = _kind(seen) if kind is None else kind
        spellings = (*(ABSENT if own == "string" else MISSING), *reading.null_values)
        columns.append(_as(_missing(fn.col(f"c{at}"), spellings), own, bool(seen["zoned"])).alias(name))
    return df.select(*columns)


def _look(column: Column, kind: Kind | None) -> Column:
    """What all values of a column have in common, or the first that is not of the declared kind."""
    text = fn.trim(column)
    misfit = fn.lit(None).cast("string") if kind is None else fn.when(column.isNotNull() & _wrong(text, kind), text)

    def every(condition: Column) -> Column:
        return fn.coalesce(fn.bool_and(fn.when(text.isNotNull(), condition)), fn.lit(False))

    return fn.struct(
        fn.count(column).alias("values"),
        *(every(text.rlike(shape)).alias(name) for name, shape in SHAPES.items()),
        every(text.rlike(WHOLE)).alias("whole"),
        every(text.try_cast("bigint").isNotNull()).alias("long"),
        every(~text.rlike(PADDED)).alias("plain"),
        every(text.rlike(ZONE)).alias("zoned"),
        every(~text.rlike(ZONE)).alias("local"),
        fn.first(fn.when(misfit.isNotNull(), _placed(misfit)), ignorenulls=True).alias("misfit"),
    )


def _with_file(df: DataFrame) -> DataFrame:
    return df.withColumn(_FILE, fn.input_file_name())


def _placed(value: Column) -> Column:
    return fn.struct(value.alias("value"), fn.col(_FILE).alias("file"))


def _wrong(text: Column, kind: Kind) -> Column:
    if kind == "string":
        return fn.lit(False)
    if kind == "timestamp":
        return ~text.rlike(SHAPES["time"])
    return text.try_cast(_CAST[kind]).isNull()


def _kind(seen: Row) -> Kind:
    if seen["number"] and seen["plain"] and (seen["long"] or not seen["whole"]):
        return "int" if seen["whole"] else "float"
    if seen["boolean"]:
        return "bool"
    return "timestamp" if seen["time"] and (seen["zoned"] or seen["local"]) else "string"


def _as(column: Column, kind: Kind, zoned: bool) -> Column:
    if kind == "string":
        return column
    text = fn.trim(column)
    if kind == "timestamp":
        return text.cast("timestamp" if zoned else "timestamp_ntz")
    return text.cast(_CAST[kind])


def _missing(column: Column, spellings: tuple[str, ...]) -> Column:
    return fn.when(~fn.trim(column).isin(*spellings), column)


def is_text(df: DataFrame) -> bool:
    """Whether the rows come from text files, where a column of strings is the reader's guess."""
    names = (os.path.splitext(each)[0] if each.lower().endswith(_PACKED) else each for each in df.inputFiles())
    return any(name.lower().endswith(TEXTS) for name in names)


def sights(df: DataFrame, columns: Mapping[str, Column]) -> dict[str, dict[str, Sight]]:
    """For columns of strings, by name: the first value of every shape (number, boolean, time, text), and its file."""
    looks: list[Column] = []
    for column in columns.values():
        text = _missing(fn.trim(column), MISSING)
        other = text.isNotNull()
        for shape in SIGHTS.values():
            looks.append(fn.first(fn.when(other & text.rlike(shape), _placed(text)), ignorenulls=True))
            other = other & ~text.rlike(shape)
        looks.append(fn.first(fn.when(other, _placed(text)), ignorenulls=True))
    shapes = (*SIGHTS, "text")
    (row,) = _with_file(df).select(*(each.alias(f"c{at}") for at, each in enumerate(looks))).collect()
    by_column: dict[str, dict[str, Sight]] = {}
    for at, name in enumerate(columns):
        mine: list[Any] = list(row)[at * len(shapes) : (at + 1) * len(shapes)]
        by_column[name] = {
            shape: Sight(each["value"], _file(each["file"]))
            for shape, each in zip(shapes, mine, strict=True)
            if each is not None
        }
    return by_column


def _file(uri: str) -> str:
    return uri.removeprefix("file://") or "the DataFrame"
