"""The README's main command: recognise patterns in a generated stock stream, on Spark in local mode."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from rich.console import Console

import cerite
from cerite import spark

NAMES = ("MSFT", "ORCL", "CSCO", "AMAT", "INTC", "RIMM", "QQQ", "YHOO", "DELL", "IPIX")
EVENTS = 1_000_000
SEQUENCE = """
SELECT msft, oracle, csco, amat
FROM Stock
WHERE SELL AS msft ; (BUY OR SELL) AS oracle ; BUY AS csco ; SELL AS amat
FILTER msft[name = 'MSFT' AND price > 26.0] AND oracle[name = 'ORCL' AND volume = 4000] AND
       csco[name = 'CSCO' AND volume = 1000] AND amat[name = 'AMAT' AND volume >= 1000]
WITHIN 100 milliseconds
"""
BY_NAME = """
SELECT cheap[price], dear[price]
FROM Stock
WHERE BUY AS cheap ; SELL AS dear
FILTER cheap[volume = 4000 AND price < 24.0] AND dear[volume = 4000 AND price > 24.5]
PARTITION BY [name]
WITHIN 1 seconds
"""
KLEENE = """
SELECT * FROM Stock
WHERE SELL AS first ; BUY+ AS bought ; SELL AS last
FILTER first[name = 'INTC'] AND bought[name = 'RIMM'] AND last[name = 'QQQ']
WITHIN 10 seconds
"""
WRONG = "SELECT * FROM Stock WHERE SELL AS x ; BUY AS y FILTER y[prize > 3] WITHIN 10 seconds"


def stock_stream(events: int, seed: int = 7) -> pa.Table:
    """A market day: BUY and SELL events of ten stocks, about 5,000 a second, prices that wander."""
    rng = np.random.default_rng(seed)
    stock = rng.integers(0, len(NAMES), events)
    price = np.round(20 + 10 * rng.random(len(NAMES))[stock] + np.cumsum(rng.normal(0, 0.01, events)), 2)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 2, events), pa.int32()), ["BUY", "SELL"]),
            "name": pa.DictionaryArray.from_arrays(pa.array(stock, pa.int32()), NAMES),
            "price": price,
            "volume": rng.choice([100, 200, 500, 1000, 4000], events),
            "at": np.cumsum(rng.exponential(0.2, events)).astype(np.int64),
        }
    )


def plot(matches: DataFrame, bars: int = 60) -> str:
    """Matches over the day, one column a stretch of time."""
    width = 200_000 // bars
    counts = {row[0]: row[1] for row in matches.groupBy((matches["end_time"] / width).cast("int")).count().collect()}
    most = max(counts.values(), default=1)
    return "".join(" ▁▂▃▄▅▆▇█"[-(-8 * counts.get(bar, 0) // most)] for bar in range(bars))


def warm(events: pa.Table) -> None:
    """Compile what the queries need, so that Spark's workers and the last query find it done."""
    for query in (SEQUENCE, BY_NAME):
        cerite.query(query).run(events, time="at").to_arrow(events=True)
    cerite.query(KLEENE).run(events, time="at").count()


def main() -> None:
    """Run the demo."""
    console = Console(markup=False, highlight=False, soft_wrap=True)
    console.print("starting Spark, and compiling kernels meanwhile if this is the first time …")
    events = stock_stream(EVENTS)
    compiling = threading.Thread(target=warm, args=(events.slice(0, 50_000),))
    compiling.start()  # a JVM is what Spark's start waits for, so this takes hardly any time of its own
    session = spark.session(conf={"spark.ui.showConsoleProgress": "true"})
    console.print(f"Spark {session.version} in local mode, {EVENTS:,} events of a generated market day in Parquet")
    compiling.join()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stocks.parquet"
        pq.write_table(events, path, row_group_size=EVENTS // 8)
        df = session.read.parquet(str(path))
        console.print(f"\nHow the first query will run:\n{spark.explain(df, SEQUENCE, time='at')}")
        for query in (SEQUENCE, BY_NAME):
            console.print(f"{query}\nrunning …")
            started = time.perf_counter()
            matches = spark.match(df, query, time="at").persist()
            total = matches.count()
            console.print(f"{total:,} matches in {time.perf_counter() - started:.1f} s, the first:")
            console.print(spark.table(matches.orderBy("end_time", "start_time", "match"), 5, time="at"))
            console.print(f"matches over the day: {plot(matches)}")

    console.print("\nKleene patterns have astronomically many matches; the local engine counts without enumerating:")
    console.print(KLEENE)
    count = cerite.query(KLEENE).run(events, time="at").count()
    console.print(f"a number of {len(str(count)):,} digits")
    console.print("\nA mistake is pointed at:\n")
    try:
        cerite.query(WRONG, schema=cerite.Schema.of_arrow(events.schema))
    except cerite.CeriteError as error:
        console.print(str(error))
    session.stop()


if __name__ == "__main__":
    main()
