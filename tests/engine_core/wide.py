"""Counting in one partition over Python's integers, which never overflow: the two stacks once more, to compare with.

Invariant: as in `counting.two_stacks`; vectors are sparse ({dstate: count > 0}), P is kept as the images of the dstates
that the front vector occupies.
"""

from collections import deque
from dataclasses import dataclass, field

from cerite.engine.subset.determinise import Determinised

Vector = dict[int, int]


@dataclass
class WideSlot:
    """The live starts of one partition, exactly counted."""

    windowed: bool
    front: list[tuple[int, Vector]] = field(default_factory=list)  # (key, vector at the flip), oldest last
    back: deque[tuple[int, int]] = field(default_factory=deque)  # (class, key), oldest first
    image: dict[int, Vector] = field(default_factory=dict)
    v: Vector = field(default_factory=dict)

    def step(self, det: Determinised, c: int, key: int, low: int) -> int:
        """Read one event; returns the number of matches that end at it."""
        if self.windowed:
            self._expire(det, low)
        self.v = _advance(det, self.v, c)
        self.image = {d: moved for d, column in self.image.items() if (moved := _advance(det, column, c))}
        started = det.successors(0, c)
        for _, target in started:
            self.v[target] = self.v.get(target, 0) + 1
        if not (self.v or self.front):
            self.back.clear()
        elif self.windowed:
            self.back.append((c, key))
        return self.total(det)

    def total(self, det: Determinised) -> int:
        """The number of matches that end at the event read last."""
        lead = self.front[-1][1] if self.front else {}
        count = 0
        for a in map(int, det.accepting):
            count += self.v.get(a, 0)
            count += sum(lead.get(d, 0) * column.get(a, 0) for d, column in self.image.items())
        return count

    def _expire(self, det: Determinised, low: int) -> None:
        while self.front and self.front[-1][0] < low:
            self.front.pop()
        if not self.front and self.back:
            while self.back and not det.successors(0, self.back[0][0]):
                self.back.popleft()
            if self.back and self.back[0][1] < low:
                self._flip(det)
                while self.front and self.front[-1][0] < low:
                    self.front.pop()

    def _flip(self, det: Determinised) -> None:
        images: dict[int, Vector] = {d: {d: 1} for d in range(1, det.n_dstates)}
        suffix: Vector = {}
        newest_first: list[tuple[int, Vector]] = []
        for c, key in reversed(self.back):
            started = det.successors(0, c)
            for _, target in started:
                suffix = _plus(suffix, images.get(target, {}))
            if started:
                newest_first.append((key, suffix))
            before = images
            images = dict(before)
            for d in det.touched[c, : det.n_touched[c]].tolist():
                images[d] = {}
                if det.entry[c, d] >= 0:
                    for _, target in det.successors(d, c):
                        images[d] = _plus(images[d], before.get(target, {}))
        self.front, self.back, self.v = newest_first, deque(), {}
        occupied = {d for _, vector in newest_first[-1:] for d in vector}
        self.image = {d: {d: 1} for d in occupied}


def _advance(det: Determinised, vector: Vector, c: int) -> Vector:
    moved: Vector = {}
    for d, n in vector.items():
        for _, target in det.successors(d, c):
            moved[target] = moved.get(target, 0) + n
    return moved


def _plus(a: Vector, b: Vector) -> Vector:
    total = dict(a)
    for d, n in b.items():
        total[d] = total.get(d, 0) + n
    return total
