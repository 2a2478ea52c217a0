"""The Spark benchmark's results as Markdown: seconds, and how many times the floor.

A row is one of three: a query on one master (`query`), processor time of a query (`processor`), or a number of `keys`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bench.tables import table

Row = dict[str, Any]
NAMES = {
    "Q3": "Q3 (CONSUME BY ANY: one task)", "Q3 by key": "Q3 without CONSUME", "registers": "S3 with a register",
}  # fmt: skip
_READERS = {"tasks": "read by the tasks", "spark": "read by Spark"}
_ORDERED = {"count": "count", "match": "all matches"}
_UNORDERED = {
    "unordered_count": "count", "unordered_match": "all matches",
    "shuffled_count": "count, Spark reads", "shuffled_match": "all matches, Spark reads",
}  # fmt: skip


def tables(rows: Sequence[Row]) -> list[str]:
    """Headings and tables of all that was measured.

    >>> print(*tables([{"master": "local[1]", "keys": 10, "events": 3_000_000, "match": 0.5, "shuffled_match": 0.7}]))
    #### All matches by number of keys, seconds | Events | Master | Keys | In time order | Shuffled |
    | --- | ---: | ---: | ---: | ---: |
    | 3 M | local[1] | 10 | 0.50 | 0.70 |
    """
    queries = [row for row in rows if "query" in row]
    parts = {
        "Processor time of counting in random order, as times the floor": _processor(rows),
        "Files in time order, seconds": _against_floor(queries, "floor", _ORDERED, "count"),
        "Files in random order, seconds": _against_floor(queries, "unordered_floor", _UNORDERED, "unordered_count"),
        "Beside the local engine and plain Spark, seconds": _beside(queries),
        "All matches by number of keys, seconds": _by_keys(rows),
    }
    return [text for heading, part in parts.items() if part for text in (f"#### {heading}", part)]


def _processor(rows: Iterable[Row]) -> str:
    lines = [
        (
            _name(row["processor"]), _millions(row), f"{_sum(row['floor']):.2f}",
            *(f"{_sum(row[way]) / _sum(row['floor']):.1f}" if way in row else "" for way in _READERS),
            *(" + ".join(f"{each:.2f}" for each in row[way]) if way in row else "" for way in _READERS),
        )
        for row in rows if "processor" in row
    ]  # fmt: skip
    parts = (f"Java + workers + driver, {reader}, s" for reader in _READERS.values())
    return _table(("Query", "Events", "Floor, s", *map(_upper, _READERS.values()), *parts), lines)


def _against_floor(rows: Iterable[Row], floor: str, columns: dict[str, str], rate: str) -> str:
    lines = [
        (
            _name(row["query"]), _millions(row), row["master"], f"{row[floor]:.2f}",
            *(f"{row[name]:.2f} ({row[name] / row[floor]:.1f}×)" if name in row else "" for name in columns),
            f"{row['events'] / row[rate] / 1e6:.1f}",
        )
        for row in rows
    ]  # fmt: skip
    heads = ("Query", "Events", "Master", "Floor", *map(_upper, columns.values()), "Count, M events/s")
    return _table(heads, lines)


def _beside(rows: Iterable[Row]) -> str:
    """What is measured once per query and stream: the local engine, plain Spark, and what Spark hands to Python."""
    lines = [
        (
            _name(row["query"]), _millions(row), f"{row['matches']:,}", f"{row['local_count']:.2f}",
            f"{row['local_match']:.2f}", f"{row['plain']:.2f}" if "plain" in row else "", f"{row['rows_shipped']:,}",
            f"{row['bytes_shipped'] / 1e6:,.0f}",
        )
        for row in rows if "local_count" in row
    ]  # fmt: skip
    heads = ("Local, count", "Local, matches", "Plain Spark, count", "Rows to Python if Spark reads", "MB")
    return _table(("Query", "Events", "Matches", *heads), lines)


def _by_keys(rows: Iterable[Row]) -> str:
    lines = [
        (_millions(row), row["master"], f"{row['keys']:,}", f"{row['match']:.2f}", f"{row['shuffled_match']:.2f}")
        for row in rows if "keys" in row
    ]  # fmt: skip
    return _table(("Events", "Master", "Keys", "In time order", "Shuffled"), lines)


def _name(query: str) -> str:
    return NAMES.get(query, query)


def _millions(row: Row) -> str:
    return f"{row['events'] // 1_000_000} M"


def _sum(parts: Sequence[float]) -> float:
    """Seconds of Java, the workers and the driver together."""
    return sum(parts)


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return table(heads, lines) if lines else ""
