"""Keys of windows and the order of events, block by block, and memory that kernels borrow or take again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerite
from cerite.core.arrays import Buffers, Pool, borrowed
from cerite.engine.events.keys import BLOCK, LEAST, MOST, first_fall, keys_below, signed, value_keys
from cerite.pattern import Size
from tests.telling import often

EDGES = (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 5)
EXTREMES = st.integers(LEAST, MOST) | st.sampled_from((LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST))


@pytest.mark.parametrize("at", EDGES)
@pytest.mark.parametrize("strictly", [False, True])
def test_the_first_fall_is_the_first_wherever_blocks_end(at: int, strictly: bool) -> None:
    keys = np.arange(3 * BLOCK)
    assert first_fall(signed(keys), -1, strictly) == -1
    keys[at:] -= 1 if strictly else 2
    assert first_fall(signed(keys), -1, strictly) == at
    keys[at + 1 :: 7] = 0  # later ones change nothing
    assert first_fall(signed(keys), -1, strictly) == at


def test_equal_keys_fall_only_where_they_must_rise() -> None:
    keys = np.zeros(2 * BLOCK + 1, np.int64)
    assert first_fall(signed(keys), 0, False) == -1
    assert first_fall(signed(keys), -1, True) == 1
    assert first_fall(signed(keys), 1, False) == 0
    assert first_fall(signed(keys[:0]), 1, False) == -1


@often(200)
@given(st.lists(EXTREMES, max_size=5), st.integers(0, 2**65) | st.sampled_from((2**63 - 1, 2**63, 2**64 - 1)))
def test_windows_reach_as_far_down_as_64_bits_go(values: list[int], width: int) -> None:
    expected = [max(LEAST, value - width) for value in values]
    assert keys_below(np.array(values, np.int64), width).tolist() == expected


def test_keys_are_the_columns_own_memory_and_live_as_long() -> None:
    column = pa.array(np.arange(1000), pa.int64()).slice(7, 900)
    key, low, missing = value_keys(column, "n", Size.of("n", 5))
    assert key.ctypes.data == column.buffers()[1].address + 7 * 8
    assert key.flags.writeable
    assert missing is None
    del column
    assert key.tolist() == list(range(7, 907))
    assert low.tolist() == list(range(2, 902))


def test_memory_that_is_not_aligned_is_copied() -> None:
    odd = np.frombuffer(bytes(8 * 5 + 1), np.int64, 4, 1)
    assert not odd.flags.aligned
    assert borrowed(odd).flags.aligned


def test_a_column_with_nulls_is_not_written_to() -> None:
    column = pa.array([3, None, 5])
    rows = pa.table({"type": ["A", "B", "B"], "n": column})
    query = cerite.query("SELECT * FROM S WHERE A ; B WITHIN 5 [n]")
    assert [match.positions for match in query.run(rows)] == [(0, 2)]
    assert column.to_pylist() == [3, None, 5]


def test_matches_that_are_kept_are_never_written_again() -> None:
    """Chunks share a pool: one that is still in use must stay as it is, whatever is found after it."""
    table = pa.table({"type": ["A", "B"] * 90_000, "n": np.arange(180_000)})
    run = cerite.query("SELECT * FROM S WHERE A ; B WITHIN 3 EVENTS").run(table, threads=1)
    kept, copies = [], []
    for number, chunk in enumerate(run.chunks()):
        if number % 2:
            kept.append(chunk.positions[5:])
            copies.append(chunk.positions[5:].copy())
    assert len(kept) > 1
    assert all(np.array_equal(one, other) for one, other in zip(kept, copies, strict=True))


def test_memory_returns_to_the_pool_when_the_last_view_of_it_is_gone() -> None:
    pool = Pool()
    first = pool.take(64)
    address, view = first.ctypes.data, pa.array(first[8:16])
    del first
    other = pool.take(64)
    assert other.ctypes.data != address
    del view
    assert pool.take(64).ctypes.data == address
    assert pool.take(65).size == 65


def test_memory_that_a_run_leaves_is_taken_again_unless_somebody_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Buffers, "_left", [])
    buffers = Buffers()
    kept, left = buffers.take("kept", 100, np.int64)[5:10], buffers.take("left", 100, np.int64)
    kept[:], address = 7, left.ctypes.data
    del left, buffers
    following = Buffers()
    assert following.take("left", 50, np.int64).ctypes.data == address
    assert following.take("left", 50, np.uint64).dtype == np.uint64
    following.take("kept", 100, np.int64)[:] = 8
    assert kept.tolist() == [7] * 5


def test_what_runs_leave_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Buffers, "_left", [])
    monkeypatch.setattr(Buffers, "LEFT", 4_000)
    several = [Buffers() for _ in range(5)]
    for each in several:
        each.take("key", 200, np.int64)
    several.clear()
    del each
    assert sum(size for size, _ in Buffers._left) <= 4_000
    assert len(Buffers._left) == 2
