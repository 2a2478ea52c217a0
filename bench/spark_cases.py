"""What the Spark benchmark runs: the data as Parquet in time order, the queries, and plain Spark's way to do S3."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from bench.streams import stock_batches
from tests.corpus.loader import paper_queries

GROUP = 1 << 20  # rows in a row group
TIME = "stock_time"
REGISTERS = """SELECT * FROM S
WHERE (SELL as T1; BUY as T2; BUY as T3)
FILTER T1[name = 'INTC'] AND T2[name = 'RIMM'] AND T3[name = 'QQQ' AND volume = T1.volume]
WITHIN 10000 [stock_time]"""


def queries() -> dict[str, str]:
    """S3, Q3 as printed, Q3 without consumption (so that partitions are independent), and S3 with a register."""
    papers = paper_queries()
    q3 = papers["G/Q3"]
    return {"S3": papers["D/S3"], "Q3": q3, "Q3 by key": q3.replace("CONSUME BY ANY", ""), "registers": REGISTERS}


def stock_folder(folder: Path, events: int) -> str:
    """The stock stream as Parquet, ten million events a file; written once."""
    path = folder / f"stocks-{events}"
    done = path / "_done"
    if not done.exists():
        path.mkdir(parents=True, exist_ok=True)
        stream = stock_batches(events)
        writer, written, files = None, 0, 0
        for batch in stream.batches:
            if writer is None:
                writer = pq.ParquetWriter(path / f"part-{files:03}.parquet", stream.schema)
            writer.write_batch(batch, row_group_size=GROUP)
            written += batch.num_rows
            if written >= 10_000_000:
                writer.close()
                writer, written, files = None, 0, files + 1
        if writer is not None:
            writer.close()
        done.touch()
    return str(path)


def unordered_folder(folder: Path, events: int) -> str:
    """The stock stream with the rows of every file in random order."""
    path = folder / f"unordered-{events}"
    done = path / "_done"
    if not done.exists():
        path.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(events)
        for file in sorted(Path(stock_folder(folder, events)).glob("*.parquet")):
            table = pq.read_table(file, read_dictionary=["type", "name"]).unify_dictionaries().combine_chunks()
            table = table.take(pa.array(rng.permutation(table.num_rows)))
            pq.write_table(table, path / file.name, row_group_size=GROUP)
        done.touch()
    return str(path)


def keyed_folder(folder: Path, events: int, keys: int) -> str:
    """A stream with this many keys, as one file in time order."""
    path = folder / f"keyed-{events}-{keys}"
    if not path.exists():
        rng = np.random.default_rng(keys)
        kinds = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 4, events), pa.int32()), ["A", "B", "C", "D"])
        table = pa.table({"type": kinds, "k": rng.integers(0, keys, events), "v": rng.random(events),
                          "at": np.arange(events)})  # fmt: skip
        path.mkdir(parents=True)
        pq.write_table(table, path / "part-000.parquet", row_group_size=GROUP)
    return str(path)


KEYED = """SELECT x, y FROM S WHERE A AS x ; B AS y FILTER x[v > 0.9] AND y[v > 0.9] PARTITION BY [k]
WITHIN 1000 milliseconds"""


def plain_s3(df: DataFrame, window: int = 10_000) -> DataFrame:
    """S3 without Cerite: joins on time slices as long as the window, with each event in its own slice and the next."""

    def events(kind: str, name: str, label: str, *, spread: bool) -> DataFrame:
        rows = df.filter((fn.col("type") == kind) & (fn.col("name") == name))
        stretch = fn.floor(fn.col(TIME) / window)
        stretches = fn.explode(fn.array(stretch, stretch + 1)) if spread else stretch
        place = fn.struct(fn.col(TIME), fn.col("_metadata.file_path"), fn.col("_metadata.row_index"))
        return rows.select(fn.col(TIME).alias(f"t{label}"), place.alias(f"p{label}"), stretches.alias("stretch"))

    first, second = events("SELL", "INTC", "1", spread=True), events("BUY", "RIMM", "2", spread=True)
    third = events("BUY", "QQQ", "3", spread=False)
    both = second.join(third, "stretch").filter("p2 < p3 AND t3 - t2 <= 10000")
    return both.join(first, "stretch").filter("p1 < p2 AND t3 - t1 <= 10000")
