"""The `cerite` command. Errors of the user's making end with a message and exit code 1, never with a traceback."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from cerite.cli.explain import explanation
from cerite.cli.inputs import Language, read_query, read_schema
from cerite.errors import CeriteError
from cerite.pattern.check import Note, check

app = typer.Typer(
    name="cerite",
    help="Complex event recognition: find every match of a pattern in a stream of events.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

QueryArgument = Annotated[str, typer.Argument(metavar="QUERY", help="A file, or the text of the query itself.")]
SchemaOption = Annotated[
    str | None,
    typer.Option(
        "--schema", "-s", metavar="FILE", help="CREATE STREAM text, JSON, or a Parquet/Arrow/CSV file's columns."
    ),
]
LanguageOption = Annotated[
    Language, typer.Option("--language", "-l", help="How the query is written; auto looks at the file's ending.")
]


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"cerite {version('cerite')}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command("check")
def check_command(query: QueryArgument, schema: SchemaOption = None, language: LanguageOption = Language.auto) -> None:
    """Parse a query and check it, against a schema if there is one.

    Examples:

        cerite check "SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER y[price > x.price] WITHIN 30 seconds"

        cerite check fraud.ceql --schema payments.parquet
    """
    parsed = read_query(query, language)
    notes = check(parsed, read_schema(schema))
    for note in notes:
        _print_note(note, parsed.source)
    warned = f" ({len(notes)} warning{'s' if len(notes) > 1 else ''})" if notes else ""
    out.print(Text("ok", style="bold green").append(warned, style="yellow"))


@app.command("explain")
def explain_command(
    query: QueryArgument, schema: SchemaOption = None, language: LanguageOption = Language.auto
) -> None:
    """Show what a query means: its pattern as a tree, variables, registers, checks and rewrites.

    Examples:

        cerite explain "SELECT x FROM S WHERE A AS x ; NOT B ; C+ WITHIN 500 EVENTS"

        cerite explain -l sremo "BUY^o>r . (true^x)* . SELL[id = r.id]^o"
    """
    out.print(explanation(read_query(query, language), read_schema(schema)), soft_wrap=False)


def _print_note(note: Note, source: str | None) -> None:
    shown = CeriteError(note.message, source=source, span=note.span, hint=note.hint)
    err.print(Text("warning: ", style="bold yellow").append(str(shown), style="default"))


def main() -> None:
    """Run the command line."""
    try:
        app()
    except CeriteError as error:
        err.print(Text("error: ", style="bold red").append(str(error), style="default"))
        sys.exit(1)
