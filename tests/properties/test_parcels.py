"""Rows that travel in parcels: each arrives once where it belongs, those of a task in the order of their values.

Spark is played here: parcels of several tasks are exchanged in any order. Runs that do not fit into memory are
written and merged; the judge of order is Python's own sort.
"""

from __future__ import annotations

import math
import random as chance
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cerite.engine.plan import plan
from cerite.engine.results.match_ids import ROW
from cerite.language.queries import make_query
from cerite.predicate.expression import Attribute
from cerite.predicate.formula import All, Formula, Negated, Some
from cerite.spark.driver.placement import murmur3, placement
from cerite.spark.worker import arrivals, parcels
from cerite.spark.worker.arrivals import arrived
from cerite.spark.worker.job import BIT, CHUNK, OWNED, WORD, Cut, Job
from cerite.spark.worker.narrow import first_number, joined, narrowed, wide_bytes
from cerite.spark.worker.packing import read
from cerite.spark.worker.parcels import Addresses, posted
from cerite.spark.worker.unordered_parquet import matters, words_of

COLUMNS = ("k", "at", "f", "s", "d", "b", "n")


def job(unit: Sequence[str], order: Sequence[str], *, owned: bool = False, columns: Sequence[str] = COLUMNS) -> Job:
    every = (*columns, *((CHUNK, OWNED) if owned else ()))
    return Job(
        plan=plan(make_query("SELECT * FROM S WHERE A")), columns=every, tests=0, unit=tuple(unit), order=tuple(order),
        keys=(), time=None, position=None, shown=(), window=None, owned=owned, files=(), root="",
    )  # fmt: skip


def stream(seed: int, rows: int) -> pa.RecordBatch:
    """Columns of all kinds with ties, NULL, NaN and both zeros; `n` numbers the rows."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any]) -> list[Any]:
        return [values[place] for place in rng.integers(0, len(values), rows)]

    floats = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.0]
    decimals = [None, Decimal("-99999999999999999999.50"), Decimal("0.25"), Decimal("99999999999999999999.25")]
    return pa.record_batch(
        {
            "k": pa.array(some(["a", "b", "", "日本", "é", "e\u0301"])),
            "at": pa.array(some([-(2**63), 2**63 - 1, *range(5)]), pa.int64()),
            "f": pa.array(some(floats), pa.float64()),
            "s": pa.array(some([None, "", "B", "a", "ä"])),
            "d": pa.array(some(decimals), pa.decimal128(24, 2)),
            "b": pa.array(some([None, True, False])),
            "n": np.arange(rows),
        }
    )


def key(value: Any) -> tuple[Any, ...]:
    """As Spark sorts: NaN after all numbers, NULL after all; texts by their bytes."""
    if value is None:
        return (2,)
    if isinstance(value, float) and math.isnan(value):
        return (1,)
    return (0, value.encode() if isinstance(value, str) else value)


def exchanged(sent: Sequence[pa.RecordBatch], seed: int) -> dict[int, list[pa.RecordBatch]]:
    """The parcels of every task, in any order."""
    tasks: dict[int, list[pa.RecordBatch]] = {}
    for place in np.random.default_rng(seed).permutation(len(sent)):
        tasks.setdefault(sent[place].column(0)[0].as_py(), []).append(sent[place].select([1]))
    return tasks


def one_task(columns: Sequence[str] = COLUMNS) -> Addresses:
    return Addresses(tuple(columns), None, None, {}, {0: 0}, (0,), placement(1))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("held", [1 << 27, 4_000, 300])
def test_rows_arrive_in_order(seed: int, held: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(arrivals, "MOST_IN_MEMORY", held)
    monkeypatch.setattr(arrivals, "PIECE", 200 + 100 * seed)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    rng = np.random.default_rng(seed)
    rows = stream(seed, 400)
    unit, order = [("k",), (), ("k", "b")][seed % 3], list(rng.permutation(["at", "f", "s", "d"]))
    work = job(unit, [*order, "n"])
    sent = [each for at in range(0, 400, 50) for each in posted(work, one_task(), rows.slice(at, 50))]
    spilled = []
    monkeypatch.setattr(
        arrivals.Runs, "add", lambda runs, pieces, add=arrivals.Runs.add: spilled.append(add(runs, pieces))
    )
    table = pa.Table.from_batches(list(arrived(work, iter(exchanged(sent, seed)[placement(1)[0]]))))
    assert len(spilled) > 2 if held < 1 << 27 else not spilled
    assert not list(tmp_path.iterdir()), "nothing is left behind"
    expected = sorted(rows.to_pylist(), key=lambda row: [key(row[name]) for name in (*unit, *order, "n")])
    assert [row["n"] for row in table.to_pylist()] == [row["n"] for row in expected]
    assert table.schema == rows.schema


@pytest.mark.parametrize("tasks", [1, 2, 7, 500])
@pytest.mark.parametrize("size", [1 << 25, 700])
def test_every_row_arrives_once_where_its_bucket_goes(tasks: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skewed: most rows are in one bucket; with 500 tasks there are more of them than rows; one row is very wide."""
    monkeypatch.setattr(parcels, "PARCEL_BYTES", size)
    rng = np.random.default_rng(tasks)
    bucket = np.where(rng.random(300) < 0.8, 0, rng.integers(0, tasks, 300))
    wide = ["x" * 5_000 if number == 7 else "y" for number in range(300)]
    rows = pa.record_batch({"n": np.arange(300), "wide": wide, "bucket": bucket})
    where = Addresses(("n", "wide", "bucket"), "bucket", None, {}, {}, tuple(range(tasks)), placement(tasks))
    work = job((), ["n"], columns=("n", "wide"))
    sent = list(posted(work, where, rows))
    by_number = exchanged(sent, 1)
    assert len(by_number) == np.unique(bucket).size
    if size == 700:
        assert len(sent) > len(by_number), "several parcels for one task"
    numbers: list[int] = []
    for number, mine in by_number.items():
        task = murmur3(number) % tasks
        got = pa.Table.from_batches(list(arrived(work, iter(mine))))
        assert got["n"].to_pylist() == np.flatnonzero(bucket == task).tolist()
        assert [len(each) for each in got["wide"].to_pylist()] == [len(wide[n]) for n in got["n"].to_pylist()]
        numbers += got["n"].to_pylist()
    assert sorted(numbers) == list(range(300))


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.float64(), pa.timestamp("us", "UTC"), pa.date32(), pa.decimal128(9, 1)]
)
@pytest.mark.parametrize("hot", [False, True])
def test_rows_are_in_every_chunk_that_reads_them(kind: pa.DataType, hot: bool) -> None:
    day = 86_400_000 if kind == pa.date32() else 10 if pa.types.is_decimal(kind) else 1
    cuts = tuple(Cut(own * day, read * day) for own, read in ((30, 25), (40, 26), (70, 60)))
    times = np.random.default_rng(1).integers(0, 100, 200)
    bucket = np.arange(200) % 3
    values = pa.array(times, pa.int32() if kind == pa.date32() else pa.int64())
    values = values.cast(pa.decimal128(20, 1)).cast(kind) if pa.types.is_decimal(kind) else values.cast(kind)
    rows = pa.record_batch({"at": values, "n": np.arange(200), "bucket": bucket})
    first, tasks = ({1: 3}, (0, 0, 0, 0, 1, 1, 0)) if hot else ({0: 0}, (0, 1, 1, 0))
    where = Addresses(
        ("at", "n", "bucket"), "bucket" if hot else None, "at", {1 if hot else 0: cuts}, first, tasks, placement(2)
    )
    work = job([CHUNK], ["at", "n"], owned=True, columns=("at", "n"))
    seen: list[tuple[int, int, bool]] = []
    for number, mine in exchanged(list(posted(work, where, rows)), 2).items():
        for row in pa.Table.from_batches(list(arrived(work, iter(mine)))).to_pylist():
            unit = row[CHUNK] + (first[1] if bucket[row["n"]] == 1 else bucket[row["n"]]) if hot else row[CHUNK]
            assert murmur3(number) % 2 == tasks[unit]
            seen.append((row["n"], row[CHUNK], row[OWNED]))
    expected = []
    for number, at in enumerate(times * day):
        if hot and bucket[number] != 1:
            expected.append((number, 0, True))
            continue
        own, last = (
            sum(end <= at for end in ends) for ends in zip(*((cut.own, cut.read) for cut in cuts), strict=True)
        )
        expected += [(number, chunk, chunk == own) for chunk in range(own, last + 1)]
    assert sorted(seen) == expected


NUMBERS = {
    "wide": [-(2**63), 2**63 - 1, 0], "constant": [-7, -7, -7], "rising": [2**62, 2**62 + 1, 2**62 + 2],
    "byte": [1_000, 1_255, 1_000], "short": [-1, 255, 0], "int": [2**40, 2**40 + 2**32 - 1, 2**40],
    "long": [0, 2**32, 1], "missing": [5, None, 5], "falling": [3, 2, 1],
}  # fmt: skip
KINDS = [pa.int64(), pa.int32(), pa.int8(), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.date32(),
         pa.duration("ms"), pa.time64("us"), pa.uint64(), pa.float64(), pa.bool_(), pa.string(),
         pa.decimal128(22, 2)]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_narrow_columns_are_what_they_were(kind: pa.DataType) -> None:
    """Of all types, alone and joined in any order: narrow in one way, in another, and not at all."""
    columns = []
    for values in NUMBERS.values():
        try:
            stored = pa.int32() if kind == pa.date32() else pa.int64()
            columns.append(pa.array(values, stored).cast(kind) if kind != pa.time64("us") else pa.array(values, kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
            continue
    columns.append(columns[0].slice(0, 0))
    rng = np.random.default_rng(1)
    batches = [pa.record_batch({"it": column}) for column in columns]
    for batch in batches:
        assert joined([narrowed(batch)]).equals(batch)
    for _ in range(20):
        some = [batches[place] for place in rng.integers(0, len(batches), 4)]
        whole = joined([narrowed(batch) for batch in some])
        assert whole.column(0).equals(pa.concat_arrays([batch.column(0) for batch in some]))
        assert whole.schema == some[0].schema
        assert sum(wide_bytes(narrowed(batch)) for batch in some) == pytest.approx(whole.nbytes, abs=64)


def test_rows_whose_numbers_say_no_more_than_their_order_take_no_room() -> None:
    """Only their order counts then: in a parcel they are consecutive, whatever lay between them."""
    work = job((), ["at", ROW], columns=("at", ROW))
    where = replace(one_task(("at", ROW)), numbered=True)
    rng = np.random.default_rng(1)
    number = np.flatnonzero(rng.random(4_000) < 0.3)
    at = rng.integers(0, 9, number.size)
    rows = pa.record_batch({"at": at, ROW: number})
    parts = [rows.slice(begin, 100) for begin in range(0, number.size, 100)]
    sent = [each for part in parts for each in posted(work, where, part)]
    assert all(first_number(read(each.column(1)[0].as_buffer()), ROW) in number for each in sent)
    assert all(pa.types.is_null(read(each.column(1)[0].as_buffer()).column(1).type) for each in sent)
    got = pa.Table.from_batches(list(arrived(work, iter(exchanged(sent, 3)[placement(1)[0]]))))
    assert got["at"].to_pylist() == sorted(at.tolist())
    ranks = [np.flatnonzero(number <= row)[-1] // 100 for row in got[ROW].to_pylist()]
    assert ranks == (np.argsort(at, kind="stable") // 100).tolist()


@pytest.mark.parametrize("tests", [1, 5, 62, 63, 64, 65, 124, 125, 128, 190, 400])
def test_bits_are_in_the_words_that_spark_would_send(tests: int) -> None:
    bits = np.random.default_rng(tests).integers(0, 2**64, (50, -(-tests // 64)), np.uint64)
    words = words_of(bits, tests)
    for number in range(len(words) * WORD):
        sent = words[number // WORD] >> number % WORD & 1
        known = bits[:, number // 64] >> np.uint64(number % 64) & np.uint64(1) if number < tests else 0 * sent
        assert sent.tolist() == known.tolist()
    assert len(words) == -(-tests // WORD)


def test_a_formula_is_true_of_bits() -> None:
    """Bits in two words, joined and negated in all ways."""
    rng = chance.Random(5)
    bits = np.random.default_rng(5).integers(0, 2**64, (64, 2), np.uint64)

    def drawn(depth: int) -> Formula:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice((True, False)) if rng.random() < 0.1 else Attribute(f"{BIT}{rng.randrange(100)}")
        if rng.random() < 0.2:
            return Negated(drawn(depth - 1))
        return rng.choice((All, Some))(tuple(drawn(depth - 1) for _ in range(rng.randint(1, 4))))

    def is_true(formula: Formula, row: int) -> bool:
        if isinstance(formula, bool):
            return formula
        if isinstance(formula, Negated):
            return not is_true(formula.part, row)
        if isinstance(formula, (All, Some)):
            return (all if isinstance(formula, All) else any)(is_true(part, row) for part in formula.parts)
        number = int(str(formula.name).removeprefix(BIT)) if isinstance(formula, Attribute) else -1
        return bool(int(bits[row, number // 64]) >> number % 64 & 1)

    for _ in range(200):
        formula = drawn(3)
        assert matters(formula, bits).tolist() == [is_true(formula, row) for row in range(64)]


def test_no_rows() -> None:
    assert list(arrived(job(["k"], ["at"]), iter([]))) == []
    assert list(parcels.sender(job(["k"], ["at"]), one_task())(iter([stream(1, 0)]))) == []
