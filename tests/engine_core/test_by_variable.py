"""A column per variable: the positions whose label names it, however the chunk says which labels there are."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerite
from cerite.engine.results.output import MatchChunk, alike, lists_of
from cerite.engine.tecs import enumerate as enumerator

NAMES = ("u", "v", "w", "x")
labellings = st.lists(st.frozensets(st.sampled_from(NAMES)), min_size=1, max_size=4)


def chunk_of(rows: list[list[int]]) -> MatchChunk:
    """Matches with these labels; the positions are all different."""
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    labels = np.array([label for row in rows for label in row], np.int32)
    ends = np.arange(len(rows), dtype=np.int64)
    return MatchChunk(ends, ends, offsets, np.arange(labels.size, dtype=np.int64) * 7, labels)


def expected(chunk: MatchChunk, labels: tuple[frozenset[str], ...], name: str) -> list[list[int]]:
    rows = chunk.to_arrow().to_pydict()
    pairs = [zip(ps, ls, strict=True) for ps, ls in zip(rows["positions"], rows["labels"], strict=True)]
    return [[position for position, label in row if name in labels[label]] for row in pairs]


def check(chunk: MatchChunk, labels: tuple[frozenset[str], ...]) -> None:
    every, *columns = lists_of(chunk, labels, NAMES)
    assert every.to_pylist() == chunk.to_arrow()["positions"].to_pylist()
    for name, column in zip(NAMES, columns, strict=True):
        column.validate(full=True)
        assert column.to_pylist() == expected(chunk, labels, name)


@settings(max_examples=200, deadline=None)
@given(labellings, st.data())
def test_oracle_any_labels(names: list[frozenset[str]], data: st.DataObject) -> None:
    row = st.lists(st.integers(1, len(names)), max_size=5)
    rows = data.draw(st.lists(row, min_size=1, max_size=6)) * data.draw(st.sampled_from((1, 100)))
    check(chunk_of(rows), (frozenset(), *names))


@settings(max_examples=200, deadline=None)
@given(labellings, st.data())
def test_oracle_the_same_labels_in_every_match(names: list[frozenset[str]], data: st.DataObject) -> None:
    sequence = tuple(data.draw(st.lists(st.integers(1, len(names)), min_size=1, max_size=5)))
    plain = chunk_of([list(sequence)] * data.draw(st.sampled_from((1, 2, 127, 128, 129, 300))))
    chunk = alike(plain.starts, plain.ends, plain.positions, sequence)
    assert chunk.to_arrow().equals(plain.to_arrow())
    check(chunk, (frozenset(), *names))
    check(chunk.select(np.arange(0, len(chunk), 2)), (frozenset(), *names))


def test_variables_of_the_same_marks_share_a_column() -> None:
    labels: tuple[frozenset[str], ...] = (frozenset(), frozenset({"u", "v", "x"}), frozenset({"w", "x"}))
    every, u, v, w, x = lists_of(chunk_of([[1, 2], [1, 2, 2]]), labels, NAMES)
    assert (u is v, x is every) == (True, True)
    assert w.to_pylist() == [[7], [21, 28]]


@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 14])
def test_chunks_with_one_sequence_of_labels_and_with_several(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ; B has one, A ; (B OR C)+ has chunks that begin alike and go on otherwise; where they are cut is not seen."""
    events = pa.table({"type": list("ABBCABCBBA")})
    for text, alike_everywhere in (("A AS x ; B AS y", True), ("A AS x ; (B OR C)+ AS y", chunk == 1)):
        result = cerite.query(f"SELECT * FROM S WHERE {text}").run(events)
        want = result.to_arrow().combine_chunks()
        monkeypatch.setattr(enumerator, "CHUNK", chunk)
        assert result.to_arrow().combine_chunks().equals(want)
        assert all(each.sequence is not None for each in result.chunks()) == alike_everywhere
        assert want["y"].to_pylist() == [list(match.variables["y"]) for match in result]
        monkeypatch.undo()


def test_tables_do_not_change_when_later_ones_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumerator, "CHUNK", 4)
    result = cerite.query("SELECT * FROM S WHERE A AS x ; (B OR C)+ AS y").run(pa.table({"type": list("ABCBAABC")}))
    tables = [(table, table.to_pydict()) for table in result.tables()]
    assert all(table.to_pydict() == then for table, then in tables)
