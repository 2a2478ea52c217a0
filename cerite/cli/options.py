"""Options that several commands take, each described once, and the names that an option lists."""

from __future__ import annotations

from typing import Annotated

import typer

from cerite.cli.inputs import Language, SemanticsChoice, TimeUnitChoice

QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A file, `-` for standard input, or the text of the query itself.")
]
SchemaOption = Annotated[
    str | None,
    typer.Option("--schema", "-s", metavar="FILE", help="CREATE STREAM text, JSON, or data to take the columns from."),
]
LanguageOption = Annotated[
    Language, typer.Option("--language", "-l", help="The language of the query; auto infers it from the file's ending.")
]
NullOption = Annotated[
    list[str] | None,
    typer.Option("--null", metavar="TEXT", help="A spelling of missing values in text files (repeat for more)."),
]
DelimiterOption = Annotated[
    str | None, typer.Option("--delimiter", metavar="C", help="The character between the values of CSV.  [default: ,]")
]
TimeUnitOption = Annotated[TimeUnitChoice, typer.Option(help="The unit of a time column that holds numbers.")]
TypeOption = Annotated[str | None, typer.Option(metavar="C", help="The column of the event type.  [default: type]")]
SemanticsOption = Annotated[SemanticsChoice, typer.Option(help="What makes two matches different.")]
MasterOption = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark's master, e.g. local[4] or spark://host:7077.")
]
ConfOption = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A Spark setting (repeat for more).")]
TIME = typer.Option(metavar="C", help="The column of the event time.")  # a live stream must have one
OrderOption = Annotated[
    list[str] | None,
    typer.Option(metavar="C", help="Sort by time and these columns (repeat, or separate by commas)."),
]
FormatOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="csv, tsv, jsonl, core, parquet or arrow, if the file name does not say."),
]


def names(given: list[str] | None) -> list[str]:
    """Columns that an option names once or more, or separated by commas."""
    return [name for each in given or () for name in each.split(",")]
