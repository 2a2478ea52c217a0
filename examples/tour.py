"""Every public call of Cerite, once, in a program that mypy accepts: `python examples/tour.py`.

With `spark` as its argument it goes on to Spark. What is marked with `type: ignore` is a mistake that a type checker
finds in a user's program, too.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import rich

import cerite
from cerite import absent, attr, datasets, errors, event, language, permute, reference, seconds, skip, spark, var
from cerite import functions as f
from cerite.pattern import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TRADES: list[dict[str, Any]] = [
    {"type": "SELL", "id": 1, "price": 10.0, "at": 1000},
    {"type": "BUY", "id": 1, "price": 12.0, "at": 2000},
    {"type": "BUY", "id": 2, "price": 13.0, "at": 3000},
    {"type": "BUY", "id": 1, "price": 14.0, "at": 60_000},
]
COLUMNS = {"type": "string", "id": "int", "price": "float", "at": "int"}
TEXT = "SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER y[price > x.price] PARTITION BY [id] WITHIN 30 seconds"


def build() -> list[cerite.Query]:
    """Queries from text and from Python, with windows said in four ways."""
    pair = event("SELL").as_("x") >> event("BUY", attr.price > 11).as_("y")
    rising: cerite.Builder = pair.filter(y=attr.price > var.x.price)
    calm = event("SELL") >> absent(event("HALT")) >> event("BUY")
    rare = language.skip_any(event("SELL"), event("BUY")) | language.skip_next(event("SELL"), event("BUY"))
    nowhere = language.nothing() | language.empty()
    return [
        cerite.query(TEXT, schema=COLUMNS),
        cerite.query(rising, select=["y"], partition_by=["id"], within="30 seconds"),
        cerite.query(rising.within(500, "events"), strategy="LAST", within=timedelta(seconds=30)),
        cerite.query(permute(event("SELL"), event("BUY")), consume="ANY", limit=2, within=seconds(30)),
        cerite.query(skip("SELL") >> event("BUY").plus().as_("buys"), within="4 events"),
        *(cerite.query(each, within="9 events") for each in (calm, rare, nowhere)),
    ]


def parse() -> list[QuerySpec]:
    """The other languages, and parts of CEQL."""
    pattern = language.parse_pattern("SELL AS x ; BUY AS y")
    condition = language.parse_condition("price > 3 AND id = 1")
    schema: cerite.Schema = language.parse_schema("CREATE STREAM S { EVENT SELL { price: float } }")
    letters = language.parse_sremo("SELL . BUY")
    print(language.sremo_text(letters), condition, schema, sep="\n")
    wayeb = language.parse_wayeb(";(IsEventTypePredicate(SELL),IsEventTypePredicate(BUY))")
    print([note.message for note in cerite.check(language.parse_query(TEXT), schema=None)])
    return [QuerySpec(pattern), QuerySpec(letters), wayeb]


def run(folder: Path) -> None:
    """Matches: counted, looked at, written, compared with the judge's."""
    query = cerite.query(TEXT)
    matches: cerite.Matches = query.run(TRADES, time="at", schema=COLUMNS)
    print(query.explain(), query.automaton.mermaid(), query.draw(folder / "query.mmd"), sep="\n")
    print(matches.plot(limit=10, lanes=3))
    first: cerite.Match = matches.head(1)[0]
    print(
        matches.exists(),
        matches.count(),
        matches.suppressed(),
        first.variables["y"],
        matches.events_of(first, "y"),
        matches.table(),
    )
    assert list(matches) == reference.matches(query.query, TRADES, time="at")
    print(query.why(first), query.why_not(TRADES, events=[0, 3], time="at"), sep="\n")
    print(query.trace(TRADES, time="at"))
    matches.to_parquet(folder / "matches.parquet")
    matches.to_jsonl(folder / "matches.jsonl", events=True)
    matches.to_json(folder / "matches.json")
    matches.to_csv(folder / "matches.csv", long=True)
    print(matches.to_arrow(events=True).num_rows, matches.to_pandas(long=True), matches.to_polars(events=True))
    print(matches.table_schema(events=True))
    y = var.y.price
    measured = cerite.query(
        event("SELL").as_("x") >> event("BUY").plus().as_("y"),
        select={
            "low": var.x.price, "n": f.count(var.y), "all": f.count(), "d": f.count_distinct(y),
            "sum": f.sum(y), "mean": f.avg(y), "least": f.min(y), "most": f.max(y),
            "first": f.first(y), "last": f.last(y), "every": f.collect(y),
            "begun": f.start_time(), "ended": f.end_time(), "took": f.duration(),
        },
    )  # fmt: skip
    for match, values in reference.measures(measured.query, TRADES, time="at"):
        print(match, values)
    print(measured.run(TRADES, time="at", schema=COLUMNS).to_pandas())
    print(matches.columns, [table.num_rows for table in matches.tables()])
    print(matches.to_arrow().num_rows, matches.to_pandas().shape, matches.to_polars().shape)
    print(sum(batch.num_rows for batch in cerite.open_events(folder / "matches.parquet").batches()))
    with suppress(TypeError):
        query.run({"S": TRADES}, tiem="at")  # type: ignore[call-arg]


def try_out() -> None:
    """A generated stream, and what its query finds."""
    for name in datasets.NAMES:
        data: datasets.Dataset = datasets.load(name, rows=200, seed=1)
        matches = cerite.query(data.query).run(data.events, time=data.time)
        print(data.about, matches.count() == len(data.planted))


def follow() -> None:
    """A stream in batches, taken up again from a snapshot; another whose events come late and out of order."""
    query = cerite.query(TEXT)
    stream: cerite.EventStream = query.stream(COLUMNS, time="at", counting=True)
    print(stream.push(TRADES[:1]).count(), stream.rows)
    again = query.stream(COLUMNS, time="at", counting=True)
    again.restore(stream.snapshot())
    print(again.push(TRADES[1:]).count())
    late = query.stream(COLUMNS, time="at", watermark=timedelta(seconds=5), late="side")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.LateWarning)
        print([matches.count() for matches in late.follow(TRADES, close=False)], late.metrics, late.closed)
        print(late.advance(90_000).count(), late.close().count())


def fail() -> list[str]:
    """Every error has a message, and most a hint."""
    kinds: list[type[errors.CeriteError]] = [
        errors.ArgumentError, errors.BudgetError, errors.MissingExtraError, errors.PatternError,
        errors.QuerySyntaxError, errors.SchemaError, errors.SnapshotError, errors.StreamError, errors.OrderError,
    ]  # fmt: skip
    said = []
    for text in ("SELECT", "SELECT z FROM S WHERE SELL AS x", "SELECT * FROM S WHERE A FILTER A[price > 'x' + 1]"):
        try:
            cerite.query(text)
        except (cerite.QuerySyntaxError, cerite.PatternError, cerite.SchemaError, cerite.StreamError) as error:
            said.append(error.message)
            kinds.remove(type(error))
    try:
        cerite.query(3)  # type: ignore[arg-type]
    except cerite.CeriteError as error:
        said.append(f"{error.message}; {error.hint}")
    warnings.simplefilter("ignore", cerite.CeriteWarning)
    warnings.simplefilter("ignore", errors.TextWarning)
    return [*said, *(kind.__name__ for kind in kinds)]


def distribute() -> None:
    """The same query on Spark."""
    session = spark.session("local[2]")
    warnings.simplefilter("ignore", spark.OneTaskWarning)
    frame = session.createDataFrame(TRADES)
    matches = spark.match(frame, TEXT, time="at", partitions=2)
    matches.show()
    rich.print(spark.table(matches, 5, time="at", type="type"))
    print(spark.count(frame, TEXT, time="at"))
    print(spark.explain(frame, TEXT, time="at"))
    try:
        spark.count(frame.union(frame), TEXT, time="at")
    except Exception as failure:
        print(spark.task_error(failure))


def distribute_live(folder: Path) -> None:
    """A stream of files on Spark: matches and late events in every micro-batch, the numbers, and the end."""
    session = spark.session("local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")  # as many as shards: each is a store of state
    for name in ("in", "over"):
        (folder / name).mkdir()
    session.createDataFrame(TRADES).write.mode("overwrite").json(str(folder / "in"))
    source = session.readStream.schema("type string, id long, price double, at long").json(str(folder / "in"))
    matches = spark.match(
        source, TEXT, time="at", order_by="price", watermark="10 seconds", shards=2, late="side",
        final=str(folder / "over"),
    )  # fmt: skip

    def show(batch: DataFrame, _: int) -> None:
        for each in spark.split(batch):
            each.show()
        batch.unpersist()

    def read() -> None:
        writer = matches.writeStream.foreachBatch(show).option("checkpointLocation", str(folder / "state"))
        query = writer.trigger(availableNow=True).start()
        spark.watch(query)
        progress: spark.Progress | None = spark.progress(query)
        print(progress)

    read()
    spark.finish(session, str(folder / "over"))
    read()


def main(folder: Path) -> None:
    """All of it but Spark."""
    print(*build(), *parse(), sep="\n\n")
    run(folder)
    try_out()
    follow()
    print(*fail(), sep="\n")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
        if "spark" in sys.argv[1:]:
            distribute()
            distribute_live(Path(folder))
