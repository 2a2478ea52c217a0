"""Random tables written as text, with random spellings of missing values, read back equal."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cerite.data import open_events
from cerite.data.files import chunks
from cerite.data.guesses import MISSING
from tests.telling import LARGE

MANY = settings(max_examples=40, deadline=None, suppress_health_check=LARGE)
WORDS = st.sampled_from(["Ann", "NA", "None", "-", "nan", "x, y", 'a "b"', "two\nlines", "Žofie", "12a", ""])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, width=64),
    "bool": st.booleans(),
    "string": WORDS,
    "timestamp": st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Kinds of columns, and rows; every column has a value that shows its kind, anywhere."""
    kinds = {f"c{at}": kind for at, kind in enumerate(draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1)))}
    rows = draw(st.integers(1, 12))
    columns = {}
    for name, kind in kinds.items():
        values = draw(st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows))
        known = "Ann" if kind == "string" else 0.5 if kind == "float" else draw(VALUES[kind])
        values[draw(st.integers(0, rows - 1))] = known
        columns[name] = values
    return kinds, [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def spelled(value: Any, kind: str, draw: Any) -> str:
    if value is None:
        return str(draw(st.sampled_from(("", "NULL") if kind == "string" else MISSING)))
    if isinstance(value, bool):
        return str(draw(st.sampled_from([str(value), str(value).lower(), str(value).upper()])))
    return value.isoformat(draw(st.sampled_from("T "))) if isinstance(value, datetime) else str(value)


def csv_text(kinds: dict[str, str], rows: list[dict[str, Any]], draw: Any, delimiter: str) -> str:
    out = io.StringIO()
    out.write(delimiter.join(kinds) + "\n")
    for row in rows:
        words = []
        for name, value in row.items():
            word = spelled(value, kinds[name], draw)
            special = value is not None and kinds[name] == "string" and (not word or set(word) & {'"', "\n", delimiter})
            anyway = not (value is None and kinds[name] == "string") and draw(st.booleans())
            words.append('"' + word.replace('"', '""') + '"' if special or anyway else word)
        out.write(delimiter.join(words) + "\n")
    return out.getvalue()


def json_text(kinds: dict[str, str], rows: list[dict[str, Any]], draw: Any) -> str:
    def value_of(value: Any, kind: str) -> Any:
        if value is None and kind != "string" and draw(st.booleans()):
            return draw(st.sampled_from(MISSING))
        return value.isoformat() if isinstance(value, datetime) else value

    shown = [{name: value_of(value, kinds[name]) for name, value in row.items()} for row in rows]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in shown)


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("size", [40, 1 << 24])
@MANY
@given(table=tables(), data=st.data())
def test_tables_read_back_equal(
    form: str, declared: bool, size: int, table: tuple[dict[str, str], list[dict[str, Any]]], data: st.DataObject
) -> None:
    kinds, rows = table
    delimiter = "\t" if form == "tsv" else ","
    text = json_text(kinds, rows, data.draw) if form == "jsonl" else csv_text(kinds, rows, data.draw, delimiter)
    before, chunks.CHUNK = chunks.CHUNK, size
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"x.{form}"
            path.write_text(text, "utf-8", newline="")
            actual = open_events(path, schema=kinds if declared else None).table().to_pylist()
    finally:
        chunks.CHUNK = before
    assert [{name: str(row[name]) for name in row} for row in actual] == [
        {
            name: str(float(value) if kinds[name] == "float" and value is not None else value)
            for name, value in row.items()
        }
        for row in rows
    ]


def test_the_spellings_are_those_that_the_documentation_names() -> None:
    page = (Path(__file__).parents[2] / "docs" / "running.md").read_text("utf-8")
    assert [each for each in MISSING if each and f"`{each}`" not in page] == []


def test_sources_that_mix_kinds_are_text(tmp_path: Path) -> None:
    writer = io.StringIO()
    csv.writer(writer).writerows([["v"], ["1"], ["true"], ["2024-01-01"]])
    (tmp_path / "x.csv").write_text(writer.getvalue())
    assert open_events(tmp_path / "x.csv").table().to_pydict() == {"v": ["1", "true", "2024-01-01"]}
