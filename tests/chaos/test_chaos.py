"""The fault harness: the short form in CI, 25 kills and every other fault, and 200 kills, at night."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from cerite.core.errors import CeriteError
from tests.chaos.outcome import committed, judged
from tests.chaos.payments import DELAY, closing, expected, files, late, missed, payments
from tests.chaos.scenarios import SCENARIOS, ImpossibleError, Stage, driver_killed, everything_at_once

NIGHT = [name for name in SCENARIOS if name not in ("together", "kills")]


@pytest.fixture(autouse=True)
def _possible(request: pytest.FixtureRequest) -> None:
    from cerite.spark.sessions import ensure_java

    if not Path("/proc").is_dir():
        pytest.skip("processes are found in /proc")
    try:
        ensure_java()
    except CeriteError as error:
        pytest.skip(f"no Java: {error.hint}")


def test_everything_at_once(tmp_path: Path) -> None:
    outcome = everything_at_once(Stage(tmp_path, seed=2, kills=1, events=300, files=6))
    assert outcome.good, outcome
    assert not outcome.remark, outcome
    assert outcome.late, "some events are to be late"
    assert outcome.matches > 20


@pytest.mark.nightly
@pytest.mark.parametrize("name", NIGHT)
def test_fault(name: str, tmp_path: Path) -> None:
    try:
        outcome = SCENARIOS[name](Stage(tmp_path / "stream", seed=1, kills=6, events=800, files=20))
    except ImpossibleError as reason:
        pytest.skip(str(reason))
    assert outcome.good, outcome


@pytest.mark.nightly
def test_two_hundred_kills(tmp_path: Path) -> None:
    outcome = driver_killed(Stage(tmp_path, seed=4, kills=200, events=16_000, files=604))
    assert outcome.good, outcome
    assert outcome.faults.startswith("200 kills"), outcome


# ------------------------------------------------------------ the harness itself: what it must notice
def test_lateness_is_what_the_definition_says() -> None:
    events = payments(60, seed=1, disorder=DELAY * 0)
    batches = files(events, 3)
    assert late(batches) == set()
    latest = max(event.at for event in batches[1] if event.at is not None)
    edge = latest - DELAY
    moved = [*batches[:2], [closing(events)], *batches[2:]]
    assert late(moved) == {event.n for event in batches[2]}
    at_the_edge = [batch[:] for batch in batches]
    first = batches[2][0]
    at_the_edge[2] = [first.__class__(**{**vars(first), "at": edge})]
    assert late(at_the_edge) == set()
    copied = [*batches, [closing(events)], batches[2][:1]]
    assert late(copied) == {batches[2][0].n}
    assert missed(copied) == set(), "its first copy was in time"
    assert missed(moved) == late(moved)


def test_expected_leaves_late_events_out() -> None:
    events = payments(400, seed=1)
    whole = expected(events, set())
    some = next(iter(whole))
    without = expected(events, {some[0][1][0]})
    assert some in whole
    assert some not in without


def test_what_is_lost_or_told_twice_is_counted(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    events = payments(400, seed=1)
    whole = list(expected(events, set()))
    reported = [*whole[1:], whole[2], whole[3]]  # one lost, two twice
    rows = [
        {"match": f"{place}", "late": None, **{name: [{"n": n} for n in numbers] for name, numbers in match}}
        for place, match in zip(itertools.count(), reported, strict=False)
    ]
    event = pa.list_(pa.struct({"n": pa.int64()}))
    late_type = pa.struct({"event": pa.struct({"n": pa.int64()})})
    schema = pa.schema({"match": pa.string(), "small": event, "large": event, "late": late_type})
    (tmp_path / "sink" / "_spark_metadata").mkdir(parents=True)
    for name in ("part-1.parquet", "part-orphan.parquet"):
        pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "sink" / name)
    entry = f'{{"path":"file://{tmp_path}/sink/part-1.parquet","action":"add"}}'
    (tmp_path / "sink" / "_spark_metadata" / "0").write_text(f"v1\n{entry}\n", "utf-8")
    assert len(list(committed(tmp_path / "sink"))) == 1
    outcome = judged("", "", [events], tmp_path)
    assert (outcome.lost, outcome.twice, outcome.good) == (1, 2, False)
