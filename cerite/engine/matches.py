"""Chunks of matches in flat arrays, and the same as Arrow.

Invariant: match m binds `positions[offsets[m]:offsets[m + 1]]`, ascending, to the labels at the same places.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cerite.jit import kernel


@dataclass(frozen=True)
class Matches:
    """Some matches, in the order of their ends."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int32]

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

    def select(self, which: npt.NDArray[np.int64]) -> "Matches":
        """The matches at the given indices, in that order."""
        lengths = np.diff(self.offsets)[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(self.offsets[which] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Matches(self.starts[which], self.ends[which], offsets, self.positions[places], self.labels[places])


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


@kernel
def bound_to(
    first: npt.NDArray[np.int64],
    names: npt.NDArray[np.int64],
    variables: int,
    offsets: npt.NDArray[np.int64],
    positions: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The positions bound to each variable, match by match: list offsets, where each variable's values begin, values.

    Label l names the variables `names[first[l]:first[l + 1]]`.
    """
    uses = np.zeros(first.size, np.int64)
    for label in labels:
        uses[label] += 1
    begin = np.zeros(variables + 1, np.int64)
    for label in range(first.size - 1):
        for k in range(first[label], first[label + 1]):
            begin[names[k] + 1] += uses[label]
    for v in range(variables):
        begin[v + 1] += begin[v]
    place = begin.copy()
    values = np.empty(begin[variables], np.int64)
    ends = np.zeros((variables, offsets.size), np.int32)
    for m in range(offsets.size - 1):
        for i in range(offsets[m], offsets[m + 1]):
            for k in range(first[labels[i]], first[labels[i] + 1]):
                v = names[k]
                values[place[v]] = positions[i]
                place[v] += 1
        for v in range(variables):
            ends[v, m + 1] = place[v] - begin[v]
    return ends, begin, values
