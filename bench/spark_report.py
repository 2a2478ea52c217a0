"""The Spark benchmark's results as Markdown: seconds, and how many times the floor."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
_ORDERED = {"count": "count", "match": "all matches"}
_UNORDERED = {
    "unordered_count": "count", "unordered_match": "all matches",
    "shuffled_count": "count, Spark reads", "shuffled_match": "all matches, Spark reads",
}  # fmt: skip


def tables(rows: list[Row]) -> str:
    """All tables, one under the other."""
    queries = [row for row in rows if "query" in row]
    keys = [row for row in rows if "keys" in row]
    parts = [_times(queries), _unordered(queries), _beside(queries), _by_keys(keys)]
    return "\n\n".join(part for part in parts if part)


def _times(rows: list[Row]) -> str:
    """The table for files in time order."""
    return _against_floor(rows, "floor", _ORDERED, "count")


def _unordered(rows: list[Row]) -> str:
    """The table for files in random order."""
    return _against_floor(rows, "unordered_floor", _UNORDERED, "unordered_count")


def _against_floor(rows: list[Row], floor: str, columns: dict[str, str], rate: str) -> str:
    lines = [[
        row["query"], f"{row['events'] // 1_000_000} M", row["master"], f"{row[floor]:.2f}",
        *(_against(row, name, floor) for name in columns), f"{row['events'] / row[rate] / 1e6:.1f}",
    ] for row in rows]  # fmt: skip
    return _table(["query", "events", "master", "floor", *columns.values(), "M events/s"], lines)


def _against(row: Row, name: str, floor: str) -> str:
    return f"{row[name]:.2f} ({row[name] / row[floor]:.1f}×)" if name in row else ""


def _beside(rows: list[Row]) -> str:
    """What is measured once per query and stream: the local engine, plain Spark, and what is shuffled."""
    lines = [[
        row["query"], f"{row['events'] // 1_000_000} M", f"{row['matches']:,}", f"{row['local_count']:.2f}",
        f"{row['local_match']:.2f}", f"{row['plain']:.2f}" if "plain" in row else "",
        f"{row['rows_shipped']:,}", f"{row['bytes_shipped'] / 1e6:,.0f} MB",
    ] for row in rows if "local_count" in row]  # fmt: skip
    heads = ["query", "events", "matches", "local, count", "local, matches", "plain Spark", "rows shipped", "bytes"]
    return _table(heads, lines)


def _by_keys(rows: list[Row]) -> str:
    lines = [
        [row["master"], f"{row['keys']:,}", f"{row['match']:.2f}", f"{row['shuffled_match']:.2f}"]
        for row in rows
    ]  # fmt: skip
    return _table(["master", "keys", "all matches", "all matches, shuffled"], lines)


def _table(heads: list[str], lines: list[list[str]]) -> str:
    if not lines:
        return ""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
