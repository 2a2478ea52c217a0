"""Where `cerite stream` reads from and writes to, as written on the command line.

    --source  payments/  "payments/*.csv"  kafka://host:9092/topic  socket://host:9999  rate://100
    --sink    -  matches/  matches.jsonl/  kafka://host:9092/topic

Files have columns. Kafka's messages and a socket's lines are JSON objects, whose columns have to be declared; a message
keeps `partition` and `offset`, which break ties. Invariant: what a place cannot do is reported before anything starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from cerite.cli.spark_run import FORMATS, NULLS, form_of, opened
from cerite.core.errors import CeriteError
from cerite.core.schema import Kind
from cerite.data.reading import Reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Form = Literal["files", "kafka", "socket", "rate", "console"]
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_TYPES = {"int": "bigint", "float": "double", "bool": "boolean", "string": "string", "timestamp": "timestamp"}
_READ = {"parquet": "parquet", "json": "json", "csv": "csv", "tsv": "csv", "orc": "orc"}
_PLACES = {"source": "a folder, kafka://…, socket://… or rate://…", "sink": "a folder, kafka://… or -"}


@dataclass(frozen=True)
class Place:
    """One end of a stream: `where` is a path, Kafka's servers, a socket's host or the rows per second of `rate`."""

    form: Form
    where: str
    name: str = ""  # Kafka's topic, a socket's port
    options: Mapping[str, str] | None = None

    @staticmethod
    def read(text: str, end: Literal["source", "sink"]) -> Place:
        """The place that an option names.

        >>> Place.read("kafka://one:9092,two:9092/payments?startingOffsets=latest", "source").where
        'one:9092,two:9092'
        >>> Place.read("rate://100", "source").form
        'rate'
        """
        if text == "-" and end == "sink":
            return Place("console", text)
        scheme = text.partition("://")[0] if "://" in text else ""
        if scheme not in ("kafka", "socket", "rate"):
            return Place("files", text)
        if end == "sink" and scheme != "kafka":
            raise CeriteError(f"--sink `{text}` cannot be written to", hint=f"give {_PLACES['sink']}")
        parts = urlsplit(text)
        options, topic = dict(parse_qsl(parts.query)), parts.path.strip("/")
        if scheme == "kafka":
            if not parts.netloc or not topic or "/" in topic:
                raise CeriteError(f"--{end} `{text}` names no topic", hint="write kafka://host:9092/topic")
            return Place("kafka", parts.netloc, topic, options)
        if scheme == "rate":
            if not re.fullmatch(r"[1-9]\d*", parts.netloc or "10"):
                raise CeriteError(f"--source `{text}` is not a rate", hint="write rate://100 for 100 events a second")
            return Place("rate", parts.netloc or "10", "", options)
        host, _, port = parts.netloc.rpartition(":")
        if not host or not port.isdigit():
            raise CeriteError(f"--source `{text}` names no port", hint="write socket://localhost:9999")
        return Place("socket", host, port, options)


# ------------------------------------------------------------ sources
def stream_of(
    session: SparkSession, place: Place, reading: Reading, columns: Mapping[str, Kind], files: int | None
) -> DataFrame:
    """The events as a streaming DataFrame; `columns` are the declared ones, `files` limits those of a micro-batch."""
    if place.form == "files":
        return _of_files(session, place.where, reading, columns, files)
    if place.form == "rate":
        return _of_rate(session, place)
    if not columns:
        raise CeriteError(
            f"the columns of what comes from {place.form} are not declared",
            hint='add --schema with a file that says {"type": "string", "at": "timestamp", …}, or CREATE STREAM',
        )
    reader = session.readStream.format(place.form)
    if place.form == "socket":
        return _parsed(_loaded(reader.options(host=place.where, port=place.name)), columns, ())
    named = {"kafka.bootstrap.servers": place.where, "subscribe": place.name, "startingOffsets": "earliest"}
    return _parsed(_loaded(reader.options(**named, **(place.options or {}))), columns, ("partition", "offset"))


def _of_files(
    session: SparkSession, path: str, reading: Reading, columns: Mapping[str, Kind], files: int | None
) -> DataFrame:
    """Files that are there or will come; the columns are those of the files already there, or declared."""
    form = form_of(path, reading) or "parquet"
    reader = session.readStream.format(_READ[form])
    if _READ[form] == "csv":  # columns are known by their names, not by their places
        separator = reading.delimiter or ("\t" if form == "tsv" else ",")
        reader = reader.options(header="true", enforceSchema="false", escape='"', sep=separator)
    if _is_empty(path):
        if not columns:
            raise CeriteError(
                f"--source `{path}` has no files yet that tell the columns",
                hint="put a first file there, or declare the columns with --schema",
            )
        reader = reader.schema(_declared(columns))
    else:
        reader = reader.schema(_typed(opened(session, path, replace(reading, format=form)).schema, columns))
    return _loaded(reader if files is None else reader.option("maxFilesPerTrigger", files), path)


def _is_empty(path: str) -> bool:
    """Whether a local path or pattern has no file; Spark looks at others."""
    if "://" in path:
        return False
    places = [Path(each) for each in glob(os.path.expanduser(path))]
    files = (file for each in places for file in (each.rglob("*") if each.is_dir() else [each]))
    return not any(file.is_file() and not file.name.startswith((".", "_")) for file in files)


def _typed(schema: StructType, columns: Mapping[str, Kind]) -> StructType:
    """A schema that was guessed, corrected by what is declared: JSON has no times of its own."""
    from pyspark.sql.types import StringType, StructField, StructType, _parse_datatype_string

    fields = [
        StructField(each.name, _parse_datatype_string(_TYPES[columns[each.name]]))
        if each.name in columns and isinstance(each.dataType, StringType)
        else each
        for each in schema.fields
    ]
    return StructType(fields)


def _of_rate(session: SparkSession, place: Place) -> DataFrame:
    """Events A, B and C in turn, each with its time `at` and its number `n`."""
    from pyspark.sql import functions as fn

    rows = session.readStream.format("rate").options(rowsPerSecond=place.where, **(place.options or {})).load()
    kinds = fn.element_at(fn.array(*map(fn.lit, "ABC")), (fn.col("value") % 3 + 1).cast("int"))
    return rows.select(kinds.alias("type"), fn.col("timestamp").alias("at"), fn.col("value").alias("n"))


def _parsed(messages: DataFrame, columns: Mapping[str, Kind], more: tuple[str, ...]) -> DataFrame:
    from pyspark.sql import functions as fn

    event = fn.from_json(fn.col("value").cast("string"), _declared(columns))
    return messages.select(event.alias("event"), *more).select("event.*", *more)


def _declared(columns: Mapping[str, Kind]) -> str:
    return ", ".join(f"`{name.replace('`', '``')}` {_TYPES[kind]}" for name, kind in columns.items())


def _loaded(reader: Any, *path: str) -> DataFrame:
    from pyspark.errors import AnalysisException

    try:
        return reader.load(*path)  # type: ignore[no-any-return]
    except AnalysisException as error:
        raise _refusal(error) from None


def _refusal(error: Any) -> CeriteError:
    """What Spark says about a place, with the remedy if it lacks the connector."""
    text = str(error).splitlines()[0]
    if "kafka" not in text.lower():
        return CeriteError(f"Spark cannot do this: {text}")
    import pyspark

    return CeriteError(
        "this Spark has no connector for Kafka",
        hint=f"add --conf spark.jars.packages={CONNECTOR}:{pyspark.__version__}, or --conf spark.jars=… with its files",
    )


# ------------------------------------------------------------ sinks
def writer_to(place: Place, matches: DataFrame) -> Any:
    """Spark's own writer of streams, exactly once in files; None for a place that is written batch by batch."""
    if place.form == "files":
        return matches.writeStream.format(format_of(place.where)).option("path", place.where)
    if place.form == "kafka":
        named = {"kafka.bootstrap.servers": place.where, "topic": place.name, **(place.options or {})}
        return _messages(matches).writeStream.format("kafka").options(**named)
    return None


def write_batch(place: Place, batch: DataFrame, number: int) -> None:
    """Write a micro-batch of matches or late events; written again, it replaces the first, or has the same keys."""
    from pyspark.sql import functions as fn

    if place.form == "files":
        batch.write.mode("overwrite").format(format_of(place.where)).save(f"{place.where.rstrip('/')}/batch={number}")
    elif place.form == "kafka":
        named = {"kafka.bootstrap.servers": place.where, "topic": place.name, **(place.options or {})}
        _messages(batch).write.format("kafka").options(**named).save()
    else:
        for row in batch.select(fn.to_json(fn.struct("*"), NULLS)).toLocalIterator():
            print(row[0], flush=True)


def _messages(rows: DataFrame) -> DataFrame:
    """JSON with the id of the match as the key, so that one reported again replaces itself; late events have no key."""
    from pyspark.sql import functions as fn

    key = fn.col("match") if "match" in rows.columns else fn.lit(None).cast("string")
    return rows.select(key.alias("key"), fn.to_json(fn.struct("*"), NULLS).alias("value"))


def format_of(path: str) -> str:
    """The format of a folder according to its ending: Parquet, or JSON lines."""
    ending = PurePath(path.rstrip("/")).suffix.lower()
    form = FORMATS.get(ending, "parquet")
    if form not in ("parquet", "json", "orc"):
        raise CeriteError(f"--sink `{path}` cannot hold lists of events", hint="write Parquet or JSON: matches.jsonl/")
    return form
