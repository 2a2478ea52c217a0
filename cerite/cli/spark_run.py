"""`cerite run --engine spark`: any Spark path or table in; a picture, JSON lines or folders of files out."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from cerite.api.writing import as_json, replacing_folder
from cerite.cli.recognise import check_format, count_line
from cerite.core.errors import CeriteError
from cerite.core.extras import load
from cerite.data.files.chunks import COMPRESSIONS
from cerite.data.reading import Reading
from cerite.pattern.query import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = {".parquet": "parquet", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".csv": "csv", ".orc": "orc"}
READ = FORMATS | {".tsv": "tsv"}
NULLS = {"ignoreNullFields": "false"}  # in JSON: every row has every key, as in process


def run_on_spark(
    query: QuerySpec,
    events: str,
    options: dict[str, Any],
    reading: Reading,
    *,
    master: str | None,
    conf: Sequence[str],
    output: str | None,
    overwrite: bool,
    count: bool,
    show: int,
    explain: bool,
    progress: bool,
    out: Console,
    err: Console,
) -> None:
    """Recognise on Spark and show or write the matches; `options` are those of `cerite.spark.match`."""
    from cerite import spark

    refusals = load("cerite.spark.worker.failures").refusals
    session = spark.session(master, conf=settings(conf, progress))
    df = opened(session, events, reading)
    if explain:
        out.print(Text(spark.explain(df, query, **options)))
        return
    with refusals():
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always", spark.OneTaskWarning)
            result = spark.count(df, query, **options) if count else spark.match(df, query, **options)
        for each in noted:
            if issubclass(each.category, spark.OneTaskWarning):
                err.print(Text("warning: ", style="bold yellow").append(str(each.message), style="default"))
        if isinstance(result, int):
            print(result)
        else:
            _report(
                result, output, overwrite=overwrite, show=show, time=options.get("time"), type=options.get("type"),
                out=out, err=err,
            )  # fmt: skip


def opened(session: SparkSession, events: str, reading: Reading) -> DataFrame:
    """What a path names, in the format that `form_of` finds, or else the table of that name."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # for what is no Parquet
    from pyspark.errors import PySparkException

    from cerite.spark.texts import read_csv

    if events == "-":
        raise CeriteError("Spark cannot read standard input", hint="run it here: --engine local, or write it to a file")
    form = form_of(events, reading)
    if form not in ("csv", "tsv"):
        replace(reading, format=None).refuse_text_options(f"what Spark reads from {events}")
    try:
        if form in ("csv", "tsv"):
            return read_csv(session, events, "\t" if form == "tsv" else ",", reading)
        if form is not None:
            return session.read.format(form).load(events)
        if "/" in events or Path(events).exists():
            return session.read.parquet(events)
        return session.table(events)
    except (PySparkException, Py4JJavaError) as error:
        said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
        raise CeriteError(
            f"Spark cannot read `{events}`: {said.splitlines()[0]}",
            hint=f"give a table, a folder of Parquet, or a path that ends in {', '.join(READ)}; or say what it is: "
            "--format csv",
        ) from None


def form_of(events: str, reading: Reading) -> str | None:
    """Spark's name of the format: as `--format` says, as the path ends, or as all files there end; None where nothing
    says it."""
    if reading.format is not None:
        if reading.format not in READ.values():
            raise CeriteError(f"Spark does not read the format {reading.format}", hint="run it here: --engine local")
        return reading.format
    return READ.get(_ending(PurePath(events.rstrip("/*")))) or _form_inside(events)


def _form_inside(events: str) -> str | None:
    """The format of the local files of a folder or pattern; refused where their names do not agree on one."""
    if "://" in events:
        return None
    places = [Path(each) for each in glob(os.path.expanduser(events), recursive=True)]
    files = [file for each in places for file in _files(each)]
    endings = {_ending(file) for file in files}
    forms = {READ.get(each) for each in endings}
    if not files or (len(forms) == 1 and None not in forms):
        return forms.pop() if files else None
    shown = ", ".join(f"`{each}`" if each else "nothing" for each in sorted(endings))
    raise CeriteError(
        f"the files of `{events}` do not say that they have one format that Spark reads: their names end in {shown}",
        hint=f"say which: --format csv; or give a pattern: '{events.rstrip('/*')}/*.csv'",
    )


def _files(place: Path) -> list[Path]:
    """The file, or those below a folder, without what Spark hides."""
    inside = place.rglob("*") if place.is_dir() else [place]
    names = ((file, (file.name, *file.relative_to(place).parts)) for file in inside)
    return [file for file, parts in names if file.is_file() and not any(each.startswith((".", "_")) for each in parts)]


def _ending(path: PurePath) -> str:
    """What a file's name says about its format, below a compression."""
    return (PurePath(path.stem) if path.suffix.lower() in COMPRESSIONS else path).suffix.lower()


def settings(conf: Sequence[str], progress: bool) -> dict[str, str]:
    """What `--conf name=value` sets."""
    settings = {"spark.ui.showConsoleProgress": "true"} if progress else {}
    for each in conf:
        name, equals, value = each.partition("=")
        if not equals:
            raise CeriteError(f"`--conf {each}` sets nothing", hint="write --conf name=value")
        settings[name.strip()] = value.strip()
    return settings


def _report(
    matches: DataFrame, output: str | None, *, overwrite: bool, show: int, time: str | None, type: str | None,
    out: Console, err: Console,
) -> None:  # fmt: skip
    from cerite import spark

    if output == "-":
        for row in matches.toLocalIterator():
            print(as_json(row.asDict(recursive=True)))
        sys.stdout.flush()
    elif output is not None:
        _write(matches, output, overwrite=overwrite)
        err.print(f"matches written to the folder {output}")
    else:
        cached = matches.persist()
        total = cached.count()
        if show:
            out.print(spark.table(cached, show, time=time, type=type or "type"))
        out.print(count_line(total, show))
        cached.unpersist()


def _write(matches: DataFrame, output: str, *, overwrite: bool) -> None:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as fn
    from pyspark.sql.types import ArrayType

    ending = check_format(output, FORMATS)
    if ending == ".csv":  # no nested values there: events as JSON
        nested = {field.name for field in matches.schema.fields if isinstance(field.dataType, ArrayType)}
        quoted = {name: fn.col("`" + name.replace("`", "``") + "`") for name in matches.columns}
        matches = matches.select(
            *(fn.to_json(column, NULLS).alias(name) if name in nested else column for name, column in quoted.items())
        )
    options = {"header": "true"} if ending == ".csv" else NULLS if FORMATS[ending] == "json" else {}
    writer = matches.write.options(**options).format(FORMATS[ending])
    try:
        if "://" in output or not (matches.sparkSession.conf.get("spark.master", None) or "").startswith("local"):
            writer.mode("overwrite" if overwrite else "errorifexists").save(output)  # whole once it has _SUCCESS
            return
        with replacing_folder(output) as draft:
            writer.save(str(draft))
    except AnalysisException as error:
        raise CeriteError(f"`{output}` cannot be written: {str(error).splitlines()[0]}") from None
