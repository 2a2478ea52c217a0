"""Chunks of matches in flat arrays, and the same as Arrow.

Invariant: match m binds `positions[offsets[m]:offsets[m + 1]]`, ascending, to the labels at the same places; where
`sequence` is known, these are the labels of every match.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Sequence = tuple[int, ...]


@dataclass(frozen=True)
class Matches:
    """Some matches, in the order of their ends."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int32]
    sequence: Sequence | None = None

    def __len__(self) -> int:
        return self.starts.size

    def to_arrow(self) -> pa.Table:
        """Columns start, end, positions list<int64>, labels list<int32>."""
        offsets = pa.array(self.offsets.astype(np.int32))
        return pa.table(
            {
                "start": pa.array(self.starts),
                "end": pa.array(self.ends),
                "positions": pa.ListArray.from_arrays(offsets, pa.array(self.positions)),
                "labels": pa.ListArray.from_arrays(offsets, pa.array(self.labels)),
            }
        )

    def slice(self, begin: int, stop: int) -> "Matches":
        """The matches from one index up to another."""
        first, last = self.offsets[begin], self.offsets[stop]
        return Matches(
            self.starts[begin:stop], self.ends[begin:stop], self.offsets[begin : stop + 1] - first,
            self.positions[first:last], self.labels[first:last], self.sequence,
        )  # fmt: skip

    def renumbered(self, number: npt.NDArray[np.int64]) -> "Matches":
        """The same matches with `number[p]` for position p; positions stay in the order of the events."""
        return Matches(
            number[self.starts], number[self.ends], self.offsets, number[self.positions], self.labels, self.sequence
        )

    def select(self, which: npt.NDArray[np.int64]) -> "Matches":
        """The matches at the given indices, in that order."""
        lengths = np.diff(self.offsets)[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(self.offsets[which] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Matches(
            self.starts[which], self.ends[which], offsets, self.positions[places], self.labels[places], self.sequence
        )


def alike(
    starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], positions: npt.NDArray[np.int64], sequence: Sequence
) -> Matches:
    """Matches that all have these labels; their offsets and labels are the same in every chunk and made once."""
    offsets, labels = _repeated(sequence, rows_to_keep(starts.size))
    return Matches(starts, ends, offsets[: starts.size + 1], positions, labels[: positions.size], sequence)


def rows_to_keep(count: int) -> int:
    """A power of two not below `count`: how many rows to make of what is kept and cut to length."""
    return 1 << max(count - 1, 0).bit_length()


@lru_cache(maxsize=8)
def _repeated(sequence: Sequence, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    offsets = np.arange(count + 1, dtype=np.int64) * len(sequence)
    labels = np.tile(np.array(sequence, np.int32), count)
    offsets.flags.writeable = labels.flags.writeable = False
    return offsets, labels


def concatenate(parts: list[Matches]) -> Matches:
    """Several chunks as one."""
    shifts = np.cumsum([0, *(part.positions.size for part in parts)])
    offsets = [part.offsets[1:] + shift for part, shift in zip(parts, shifts, strict=False)]
    return Matches(
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.ends for part in parts]),
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )
