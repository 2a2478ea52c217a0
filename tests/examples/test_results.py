"""The forms a result can take: frames, files, tables for people."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

import cerite

EVENTS = pa.table({"type": ["A", "B", "B"], "v": [1, 2, 3]})
FOUND = cerite.query("SELECT * FROM S WHERE A AS x ; B+ AS y").run(EVENTS)


def test_frames_hold_the_same_matches() -> None:
    table = FOUND.to_arrow()
    assert FOUND.count() == table.num_rows == 3
    assert FOUND.to_pandas()["end"].tolist() == FOUND.to_polars()["end"].to_list() == table["end"].to_pylist()
    assert sorted(FOUND.to_polars()["y"].to_list()) == sorted(table["y"].to_pylist()) == [[1], [1, 2], [2]]


def test_files_hold_the_same_matches(tmp_path: Path) -> None:
    assert FOUND.to_parquet(tmp_path / "m.parquet") == 3
    assert pq.read_table(tmp_path / "m.parquet").equals(FOUND.to_arrow())
    assert FOUND.to_csv(tmp_path / "m.csv") == 3
    assert (tmp_path / "m.csv").read_text().splitlines()[0] == "start,end,positions,A,B,x,y"
    assert FOUND.to_jsonl(tmp_path / "m.jsonl", events=True) == 3
    assert '"events":[{"type":"A","v":1},{"type":"B","v":2}]' in (tmp_path / "m.jsonl").read_text().splitlines()[0]


def test_tables_for_people() -> None:
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(FOUND)
    assert "start" in shown.get()
    html = FOUND._repr_html_()
    assert html.count("<tr>") == 4
    assert (
        "<th>positions</th>"
        in cerite.query("SELECT * FROM S WHERE A").run(EVENTS, semantics="complex-events")._repr_html_()
    )
    svg = cerite.query("SELECT * FROM S WHERE A ; B").automaton._repr_svg_()
    assert svg.startswith("<svg")
