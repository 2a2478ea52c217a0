"""The `cerite` command. A user's mistake ends it with a message and exit code 1, never with a traceback."""

from __future__ import annotations

import sys
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from cerite.api.explain.text import explanation
from cerite.api.query import Query
from cerite.cli.cautions import print_note, warnings_on
from cerite.cli.demo import demo
from cerite.cli.engine_choice import picked
from cerite.cli.inputs import (
    EngineChoice,
    FormChoice,
    Language,
    SemanticsChoice,
    TimeUnitChoice,
    read_events,
    read_query,
    read_schema,
    refuse_swapped,
)
from cerite.cli.interrupts import Commands
from cerite.cli.live_run import Ends, stream_on_spark
from cerite.cli.options import (
    TIME,
    ConfOption,
    DelimiterOption,
    FormatOption,
    LanguageOption,
    MasterOption,
    NullOption,
    OrderOption,
    QueryArgument,
    SchemaOption,
    SemanticsOption,
    TimeUnitOption,
    TypeOption,
    names,
)
from cerite.cli.recognise import Meter, check_output, report
from cerite.cli.spark_run import run_on_spark
from cerite.cli.warm_up import warm_up
from cerite.cli.why import explained
from cerite.core.errors import CeriteError, in_plain_words
from cerite.data.reading import Reading
from cerite.datasets.loading import FEWEST, NAMES
from cerite.engine import outlook
from cerite.engine.plan import plan
from cerite.pattern.check import check, declared_kinds

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)


app = typer.Typer(
    name="cerite",
    cls=Commands,
    help="""Complex event recognition: find every match of a pattern in a stream of events.

    Examples:

        cerite check "SELECT * FROM S WHERE SELL AS x ; BUY AS y WITHIN 30 seconds" --schema trades.parquet

        cerite explain query.ceql

        cerite demo cards

        cerite run query.ceql "trades/*.parquet" --time at --count

        cerite why query.ceql trades.csv --time at --rows 3,7,9

        cerite stream query.ceql --source trades/ --sink matches/ --checkpoint state/ --watermark "10 seconds"
    """,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


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


@app.command("demo")
def demo_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(NAMES)}.")] = NAMES[0],
    rows: Annotated[int, typer.Option(metavar="N", min=FEWEST, help="How many events are generated.")] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same number gives the same events.")] = 0,
    show: Annotated[int, typer.Option("--show", metavar="N", min=0, help="How many matches the table shows.")] = 10,
    save: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write the events and the query there, for `cerite run`.")
    ] = None,
) -> None:
    """Generate a stream with matches planted in it, and find them: no data needed.

    Examples:

        cerite demo

        cerite demo trades --rows 1000000

        cerite demo homes --save try/ && cerite run try/homes.ceql try/homes.parquet --time at
    """
    demo(name, rows=rows, seed=seed, show=show, save=save, out=out, err=err)


@app.command("warm-up")
def warm_up_command(
    everything: Annotated[
        bool, typer.Option("--all", help="Include strategies, absence and comparisons of runs; about twice as long.")
    ] = False,
) -> None:
    """Compile the kernels for this machine ahead of the first query, for example when an image is built.

    Every query compiles what it needs, once per machine, and says so; after this command the most common kinds of query
    do not have to wait, after `--all` hardly any does. `NUMBA_CACHE_DIR` names another folder to keep the kernels in.
    """
    warm_up(everything=everything, out=out, err=err)


@app.command("check")
def check_command(
    query: QueryArgument,
    schema: SchemaOption = None,
    null: NullOption = None,
    delimiter: DelimiterOption = None,
    language: LanguageOption = Language.auto,
) -> None:
    """Parse a query, check it (against a schema, if there is one), and say whether the engine can run it.

    Examples:

        cerite check "SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER y[price > x.price] WITHIN 30 seconds"

        cerite check fraud.ceql --schema payments.parquet
    """
    parsed = read_query(query, language)
    notes = check(parsed, read_schema(schema, parsed, null or (), delimiter))
    notes += outlook.notes(plan(parsed))  # refuses what the engine does not run, or only with too many states
    for note in notes:
        print_note(note, parsed.source, err)
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


@app.command("run")
def run_command(
    query: QueryArgument,
    events: Annotated[
        str,
        typer.Argument(
            metavar="EVENTS",
            help="A file, glob or folder: Parquet, CSV, JSON lines, Arrow, CORE text; `-` is standard input.",
        ),
    ],
    time: Annotated[str | None, TIME] = None,
    time_unit: TimeUnitOption = TimeUnitChoice.ms,
    type: TypeOption = None,
    order_by: OrderOption = None,
    position: Annotated[
        str | None, typer.Option(metavar="C", help="A column of rising positions to report instead of row numbers.")
    ] = None,
    semantics: SemanticsOption = SemanticsChoice.valuations,
    engine: Annotated[EngineChoice, typer.Option(help="Where to run; auto says what it chose.")] = EngineChoice.auto,
    master: MasterOption = None,
    conf: ConfOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say how Spark would run it, and stop.")] = False,
    count: Annotated[bool, typer.Option("--count", help="Print the number of matches and nothing else.")] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="PATH|-", help="Write .parquet, .jsonl, .json or .csv; `-` prints JSON lines."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists already.")] = False,
    show: Annotated[int, typer.Option("--show", metavar="N", min=0, help="How many matches the table shows.")] = 20,
    plot: Annotated[
        str | None,
        typer.Option(metavar="PATH|-", help="Draw the first matches as .html, .svg or .png; `-` draws them here."),
    ] = None,
    form: Annotated[
        FormChoice | None,
        typer.Option(
            help="What a row of the output is: a match with its events, an event of a match (long), or a match with "
            "positions instead of events.  [default: events]"
        ),
    ] = None,
    schema: SchemaOption = None,
    null: NullOption = None,
    delimiter: DelimiterOption = None,
    format: FormatOption = None,
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="Show progress on standard error.  [default: on a terminal]"),
    ] = None,
    language: LanguageOption = Language.auto,
) -> None:
    """Find every match of a query in events.

    Examples:

        cerite run "SELECT * FROM S WHERE SELL AS x ; BUY AS y WITHIN 10 seconds" trades.parquet --time at

        cerite run fraud.ceql "payments/*.csv" --time at --count

        cerite run fraud.ceql "payments/*.csv" --time at --show 5 --plot alerts.html

        cerite run fraud.ceql payments.jsonl --output - --form long

        zcat trades.csv.gz | cerite run fraud.ceql - --delimiter ";" --time at --time-unit s

        cerite run wayeb_pattern.sre trades.parquet --time at

        cerite run fraud.ceql payments/ --time at --engine spark --master "local[4]" --output matches.parquet

    Too many matches? Every group of events that fits the pattern is one. At the end of the query write

    `LIMIT 1` for one match at each event that completes some (`SELECT LAST …` or `NEXT` to say which),

    `CONSUME BY PARTITION` (or `ANY`) to start over after a match,

    `SUPPRESS 10 minutes PER PARTITION` to stay silent for a while after a match;

    `A : B` and `A:+` in the pattern take the very next event. docs/alerts.md compares them.
    """
    refuse_swapped("run", query, events)
    if query == "-" and events == "-":
        raise CeriteError("the query and the events cannot both come from standard input", hint="put one in a file")
    parsed = read_query(query, language)
    options: dict[str, Any] = {
        "time": time, "type": type, "order_by": names(order_by), "position": position, "semantics": semantics.value,
        "time_unit": time_unit.value, "schema": read_schema(schema),
    }  # fmt: skip
    reading = Reading.of(declared_kinds(parsed, options["schema"]), null or (), delimiter, format)
    where, why = picked(engine, events, master, conf or ())
    if engine is EngineChoice.auto:
        err.print(Text(f"engine: {where.value} ({why})", style="dim"))
    meter = Meter(err, wanted=progress)
    if count and output is not None:
        raise CeriteError("--count prints a number and writes no matches", hint="leave out --count, or --output")
    if plot is not None and (where is EngineChoice.spark or count or output == "-"):
        raise CeriteError("--plot draws in addition to the table or a file, on the local engine", hint="leave it out")
    if form is not None and output is None:
        raise CeriteError("--form says how matches are written, and none are", hint="add --output -, or a file")
    if not (count or explain):
        on_spark = where is EngineChoice.spark
        check_output(output, events, overwrite=overwrite, folder=on_spark)
        if on_spark and form not in (None, FormChoice.events):
            raise CeriteError(f"Spark gives matches with their events, not --form {form.value}", hint="--engine local")
    if where is EngineChoice.spark:
        run_on_spark(
            parsed, events, options, reading, master=master, conf=conf or (), output=output, overwrite=overwrite,
            count=count, show=show, explain=explain, progress=meter.shown, out=out, err=err,
        )  # fmt: skip
        return
    if explain:
        raise CeriteError("--explain is about Spark's plan", hint="use `cerite explain`, or add --engine spark")
    with warnings_on(err), read_events(events, reading.format) as path:
        matches = Query(parsed).run(path, **options, **_texts(reading, events), progress=meter.tell)
        with meter.of(matches.rows):
            report(matches, output=output, count=count, form=form or FormChoice.events, show=show, out=out, err=err)
            if plot is not None:
                drawn = matches.plot(None if plot == "-" else plot)
                out.print(Text(str(drawn)) if plot == "-" else f"drawn in {plot}: {drawn.caption}")


@app.command("why")
def why_command(
    query: QueryArgument,
    events: Annotated[str, typer.Argument(metavar="EVENTS", help="The events, as `run` takes them.")],
    rows: Annotated[
        list[str] | None,
        typer.Option(metavar="N", help="All events that should be a match (repeat, or separate by commas)."),
    ] = None,
    match: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Which of the matches to explain.  [default: 1, the first]")
    ] = None,
    time: Annotated[str | None, TIME] = None,
    time_unit: TimeUnitOption = TimeUnitChoice.ms,
    type: TypeOption = None,
    order_by: OrderOption = None,
    position: Annotated[
        str | None, typer.Option(metavar="C", help="A column of rising positions, which --rows then refers to.")
    ] = None,
    semantics: SemanticsOption = SemanticsChoice.valuations,
    schema: SchemaOption = None,
    null: NullOption = None,
    delimiter: DelimiterOption = None,
    format: FormatOption = None,
    language: LanguageOption = Language.auto,
) -> None:
    """Explain why a match is a match, or why events are not.

    Examples:

        cerite why fraud.ceql payments.csv --time at

        cerite why fraud.ceql payments.csv --time at --match 3

        cerite why fraud.ceql payments.csv --time at --rows 3,7,9

    For a match it shows the condition that admitted each event, with the values that were compared. For rows that
    should be a match it shows how far they got, and which condition, window, negation, strategy or clause ended it.
    """
    refuse_swapped("why", query, events)
    parsed = read_query(query, language)
    options: dict[str, Any] = {
        "time": time, "type": type, "order_by": names(order_by), "position": position, "semantics": semantics.value,
        "time_unit": time_unit.value, "schema": read_schema(schema),
    }  # fmt: skip
    reading = Reading.of(declared_kinds(parsed, options["schema"]), null or (), delimiter, format)
    with warnings_on(err), read_events(events, reading.format) as path:
        options |= _texts(reading, events)
        named = None if rows is None else names(rows)
        out.print(explained(parsed, path, options, rows=named, match=match))


@app.command("stream")
def stream_command(
    query: QueryArgument,
    source: Annotated[
        str,
        typer.Option(
            metavar="PLACE", help="A folder or glob of files, kafka://host:9092/topic, socket://… or rate://100."
        ),
    ],
    sink: Annotated[
        str,
        typer.Option(
            metavar="PLACE", help="A folder (matches/ of Parquet, matches.jsonl/), kafka://host:9092/topic, or `-`."
        ),
    ],
    checkpoint: Annotated[
        str, typer.Option(metavar="DIR", help="Where the stream's progress is kept; a restart continues from there.")
    ],
    watermark: Annotated[
        str, typer.Option(metavar="TIME", help='How far an event may lie behind the latest one: "10 seconds".')
    ],
    time: Annotated[str, TIME] = "at",
    time_unit: TimeUnitOption = TimeUnitChoice.ms,
    type: TypeOption = None,
    order_by: Annotated[
        list[str] | None,
        typer.Option(metavar="C", help="What breaks ties in time (repeat, or commas); by default Kafka's offsets."),
    ] = None,
    position: Annotated[
        str | None, typer.Option(metavar="C", help="A column of rising positions, which breaks ties and is reported.")
    ] = None,
    deduplicate: Annotated[
        list[str] | None,
        typer.Option(metavar="C", help="Events equal in these columns count once, within the watermark."),
    ] = None,
    late: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Write late events there; without it they are only counted.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Read what is there, then stop.")] = False,
    final: Annotated[
        bool, typer.Option("--final", help="Like --once, but nothing more will come: decide what is pending.")
    ] = False,
    trigger: Annotated[
        str | None, typer.Option(metavar="TIME", help="How often a micro-batch starts.  [default: as soon as it can]")
    ] = None,
    files: Annotated[
        int | None, typer.Option("--files", metavar="N", min=1, help="The most files that a micro-batch takes.")
    ] = None,
    shards: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The number of parts of the state; it cannot change later.")
    ] = None,
    semantics: SemanticsOption = SemanticsChoice.valuations,
    schema: SchemaOption = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="csv, tsv, jsonl or parquet, if the source's name does not say."),
    ] = None,
    delimiter: DelimiterOption = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="Show the stream's numbers.  [default: on a terminal]"),
    ] = None,
    language: LanguageOption = Language.auto,
) -> None:
    """Find the matches of a query in a live stream, on Spark, with none lost, whatever stops it.

    Matches are written when the watermark has passed them. The checkpoint records where the stream stands: after
    Ctrl-C, a crash or `--once`, the same command continues from there. A folder as sink has every match once; standard
    output and Kafka may get the matches of an interrupted batch again, with the same ids.

    Examples:

        cerite stream fraud.ceql --source payments/ --sink matches/ --checkpoint state/ --watermark "10 seconds" \\
        --order-by id

        cerite stream fraud.ceql --source "payments/*.csv" --sink - --checkpoint state/ --watermark "1 minute" \\
        --order-by id --final

        cerite stream fraud.ceql --source kafka://localhost:9092/payments --sink kafka://localhost:9092/alerts \\
        --schema payments.json --checkpoint state/ --watermark "10 seconds"

        cerite stream "SELECT * FROM S WHERE A ; B WITHIN 1 second" --source rate://100 --order-by n --sink - \\
        --checkpoint state/ --watermark "1 second"
    """
    parsed = read_query(query, language)
    ends = Ends.read(source, sink, late, checkpoint)
    kinds = declared_kinds(parsed, read_schema(schema, parsed))
    options: dict[str, Any] = {
        "time": time,
        "type": type,
        "order_by": names(order_by),
        "position": position,
        "deduplicate": names(deduplicate),
        "watermark": watermark,
        "shards": shards,
        "semantics": semantics.value,
        "time_unit": time_unit.value,
    }
    shown = progress or (progress is None and err.is_terminal)
    with warnings_on(err):
        stream_on_spark(
            parsed, ends, options, Reading.of(kinds, (), delimiter, format), kinds, master=master, conf=conf or (),
            files=files, trigger=trigger, once=once, final=final, progress=shown, err=err,
        )  # fmt: skip


def _texts(reading: Reading, events: str) -> dict[str, Any]:
    """How text is read; standard input was saved to a file whose name tells its format."""
    form = reading.format if events != "-" else None
    return {"null_values": reading.null_values, "delimiter": reading.delimiter, "format": form}


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show ⟲ shows ? instead
    try:
        with in_plain_words("run this"):
            app()
    except (CeriteError, OSError) as error:
        text = error.on_command_line if isinstance(error, CeriteError) else str(error)
        err.print(Text("error: ", style="bold red").append(text, style="default"))
        sys.exit(1)
