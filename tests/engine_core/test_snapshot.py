"""A snapshot at every batch boundary changes nothing, and a damaged or foreign one is refused."""

import numpy as np
import pytest
from hypothesis import given, settings

from cerite.core.errors import SnapshotError
from cerite.engine.counting import counter as count_module
from cerite.engine.counting.counter import Counter
from cerite.engine.subset.recogniser import Recogniser
from tests.engine_core.cases import Case, cases
from tests.engine_core.common import by_end, expected_counts, in_order, kleene, read
from tests.engine_core.oracle import matches


@settings(max_examples=150, deadline=None)
@given(cases(max_events=7))
def test_oracle_recogniser_restored_at_every_boundary(case: Case) -> None:
    reported, data = [], None
    for batch in case.batches():
        recogniser = Recogniser(case.automaton, consume=case.consume)
        if data is not None:
            recogniser.restore(data)
        reported += read(recogniser, batch)
        data = recogniser.snapshot()
    assert by_end(reported) == in_order(matches(case.automaton, case.events, case.consume))


@pytest.mark.parametrize("bits", [62, 1])
@settings(max_examples=100, deadline=None)
@given(case=cases(max_events=7))
def test_oracle_counter_restored_at_every_boundary(bits: int, case: Case) -> None:
    counts, data = [], None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_module, "CEILING_BITS", bits)
        patch.setattr(count_module, "SMALL", min(2, 1 << bits))
        for batch in case.batches():
            counter = Counter(case.automaton, windowed=case.windowed, consume=case.consume)
            if data is not None:
                counter.restore(data)
            counts.append(counter.feed(batch.bits, batch.key, batch.low, batch.partition))
            data = counter.snapshot()
    assert ([c.matches for c in counts], [c.occurrences for c in counts]) == expected_counts(case)


def test_damaged_or_foreign_snapshots_are_refused() -> None:
    key = np.arange(3, dtype=np.int64)
    counter = Counter(kleene())
    counter.feed(np.array([[1], [2], [2]], np.uint64), key, key - 10)
    data = counter.snapshot()
    with pytest.raises(SnapshotError, match="checksum"):
        Counter(kleene()).restore(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(SnapshotError, match="version"):
        Counter(kleene()).restore(data[:8] + b"\x63\x00" + data[10:])
    with pytest.raises(SnapshotError, match="not a snapshot"):
        Counter(kleene()).restore(b"nothing")
    with pytest.raises(SnapshotError, match="another query"):
        Counter(kleene(), consume="any").restore(data)
    with pytest.raises(SnapshotError, match="recogniser"):
        Recogniser(kleene()).restore(data)
