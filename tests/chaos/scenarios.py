"""What is done to a live stream, one function each: it sets a stream up, lets the fault happen, and judges the sink.

Every scenario may be read alone: events, files, faults, `judged`. They differ in nothing but the fault.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from tests.chaos.outcome import Outcome, judged, sink
from tests.chaos.payments import DELAY, START, Event, again, closing, deliver, files, payments
from tests.chaos.process import Life, wait

DAY = timedelta(days=1)


class ImpossibleError(Exception):
    """Why a scenario cannot be had on this machine."""


@dataclass(frozen=True)
class Stage:
    """Where a scenario plays, and how much of it: kills, events in all, files to deliver them in."""

    folder: Path
    seed: int
    kills: int
    events: int
    files: int

    def deliver(self, batches: list[list[Event]], *extra: str) -> list[list[Event]]:
        """Write the files, and one that ends the stream; returns what the source delivers."""
        whole = [*batches, [closing(event for batch in batches for event in batch)]]
        deliver(whole, self.folder / "source", extra=extra)
        return whole

    @property
    def plain(self) -> list[list[Event]]:
        """Payments out of order, all within the watermark."""
        return files(payments(self.events, self.seed), self.files)


Scenario = Callable[[Stage], Outcome]


# ------------------------------------------------------------ processes that die
def driver_killed(stage: Stage) -> Outcome:
    """SIGKILL to the driver and its JVM, again and again, at random points of one stream."""
    return killed_on_the_way(stage, "driver killed", stage.deliver(stage.plain))


def killed_on_the_way(stage: Stage, name: str, batches: list[list[Event]], *, deduplicate: bool = False) -> Outcome:
    """Lives that end at a random point, then one that may finish."""
    rng = np.random.default_rng(stage.seed)
    inside = restarts = 0
    for _ in range(stage.kills):
        life = Life(stage.folder)
        life.begin(stage.folder, deduplicate=deduplicate)
        begun, _ = progress(stage.folder)
        target = begun + int(rng.integers(0, 3))  # how many batches further this life may come
        wait(lambda life=life, target=target: progress(stage.folder)[0] > target or not life.busy)  # type: ignore[misc]
        time.sleep(float(rng.uniform(0, 1.5)))
        restarts += life.busy
        life.kill()
        begun, done = progress(stage.folder)
        inside += begun > done
    life = Life(stage.folder)
    life.begin(stage.folder, deduplicate=deduplicate)
    remark = life.next().get("error", "")
    life.end()
    faults = f"{restarts} kills, {inside} inside a micro-batch"
    if restarts < stage.kills:
        remark = f"the stream was over after {restarts} of {stage.kills} kills: give it more files"
    return judged(name, faults, batches, stage.folder, remark)


def progress(folder: Path) -> tuple[int, int]:
    """How many micro-batches have begun, and how many are done."""

    def last(name: str) -> int:
        return max((int(each.name) + 1 for each in (folder / "checkpoint" / name).glob("[0-9]*")), default=0)

    return last("offsets"), last("commits")


def workers_killed(stage: Stage) -> Outcome:
    """Python workers and executors killed in `local-cluster`; Spark itself goes on, by running tasks again."""
    batches = stage.deliver(stage.plain)
    rng = np.random.default_rng(stage.seed)
    life = Life(stage.folder, "local-cluster[2,1,1024]")
    life.begin(stage.folder)
    killed: Counter[str] = Counter()
    wait(lambda: progress(stage.folder)[1] > 0 or not life.busy)
    while life.busy and sum(killed.values()) < stage.kills:
        _, done = progress(stage.folder)
        part = "executor" if killed["worker"] > 2 * killed["executor"] else "worker"
        killed[part] += life.kill_part(part)
        pause = float(rng.uniform(0.2, 1.5))
        wait(lambda done=done: progress(stage.folder)[1] > done or not life.busy, 60)  # type: ignore[misc]
        time.sleep(pause)
    remark = life.next().get("error", "")
    life.end()
    faults = f"{killed['worker']} Python workers, {killed['executor']} executors"
    return judged("workers killed", faults, batches, stage.folder, remark)


# ------------------------------------------------------------ disks
def checkpoint_damaged(stage: Stage) -> Outcome:
    """Files of a checkpoint truncated, or bits flipped in them: refused, or the same result; never a wrong one."""
    batches = stage.deliver(stage.plain)
    life = Life(stage.folder)
    with held_back(stage.folder, len(batches) // 2):
        life.begin(stage.folder)
        life.next()
    before = sink(stage.folder / "sink").matches
    saved = stage.folder.with_name(stage.folder.name + " saved")
    shutil.copytree(stage.folder, saved)
    refused, damages, bad = Counter[str](), 0, Counter[str]()
    for name, path in newest(stage.folder / "checkpoint"):
        for damage in (truncated, flipped):
            damage(path)
            life.begin(stage.folder)
            damages += 1
            report = life.next()
            if "error" in report:
                refused[name] += 1
                with (stage.folder / "refusals").open("a", encoding="utf-8") as messages:
                    messages.write(f"{name}, {damage.__name__}: {report['error']}\n\n")
                bad["wrong"] += sink(stage.folder / "sink").matches != before
            else:
                outcome = judged("", "", batches, stage.folder)
                bad.update(lost=outcome.lost, twice=outcome.twice, wrong=outcome.wrong)
            for part in ("checkpoint", "sink"):
                shutil.rmtree(stage.folder / part)
                shutil.copytree(saved / part, stage.folder / part)
    life.begin(stage.folder)
    remark = life.next().get("error", "") or ", ".join(f"{name} {count}×" for name, count in refused.items())
    life.end()
    faults = f"{damages} damages, {sum(refused.values())} refused"
    last = judged("checkpoint damaged", faults, batches, stage.folder, remark)
    return replace(last, lost=last.lost + bad["lost"], twice=last.twice + bad["twice"], wrong=last.wrong + bad["wrong"])


@contextmanager
def held_back(folder: Path, number: int) -> Iterator[None]:
    """While this lasts, the source has only its first files."""
    files = sorted((folder / "source").iterdir())[number:]
    for path in files:
        path.rename(folder / path.name)
    yield
    for path in files:
        (folder / path.name).rename(path)


def newest(checkpoint: Path) -> Iterator[tuple[str, Path]]:
    """The last file of every kind; what is before it is not read again."""
    yield "metadata", checkpoint / "metadata"
    for kind in ("offsets", "commits", "sources/0"):
        yield kind, max(checkpoint.glob(f"{kind}/[0-9]*"), key=lambda path: int(path.stem))
    for ending in ("zip", "changelog", "sst"):
        stored = sorted(checkpoint.glob(f"state/0/*/**/*.{ending}"), key=lambda path: path.stat().st_mtime_ns)
        if stored:
            yield f"state ({ending})", max(stored[-3:], key=lambda path: path.stat().st_size)


def truncated(path: Path) -> None:
    """Half of it is gone."""
    _unguarded(path)
    os.truncate(path, path.stat().st_size // 2)


def flipped(path: Path) -> None:
    """One bit of the middle is another."""
    _unguarded(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 8
    path.write_bytes(data)


def _unguarded(path: Path) -> None:
    """Without the checksum that Hadoop keeps beside a file of state: what is damaged must be noticed without it."""
    if "state" in path.parts:
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def disk_full(stage: Stage) -> Outcome:
    """The disk of checkpoint and sink is full for a while: the job fails; with space again it goes on."""
    batches = stage.deliver(stage.plain)
    with small_disk(stage.folder / "disk", megabytes=64) as disk:
        for part in ("checkpoint", "sink"):
            (disk / part).mkdir()
            (stage.folder / part).symlink_to(disk / part)
        life = Life(stage.folder)
        failures = 0
        for free in (300, 600, 1200):  # kilobytes
            fill(disk, free)
            life.begin(stage.folder)
            failures += "error" in life.next()
        (disk / "ballast").unlink()
        life.begin(stage.folder)
        remark = life.next().get("error", "")
        life.end()
        return judged("disk full", f"failed {failures} times", batches, stage.folder, remark)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A disk in memory; only root may make one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "cerite", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which("mount") else None
    if done is None or done.returncode:
        raise ImpossibleError(f"no small disk can be made: {'no `mount`' if done is None else done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def fill(disk: Path, free: int) -> None:
    """Leave so many kilobytes free."""
    ballast = disk / "ballast"
    ballast.unlink(missing_ok=True)
    space = shutil.disk_usage(disk).free - 1024 * free
    if space > 0:
        ballast.write_bytes(bytes(space))


# ------------------------------------------------------------ sources that misbehave
def delivered_twice(stage: Stage) -> Outcome:
    """Half of the events come a second time; `deduplicate` knows them by their number."""
    batches = stage.deliver(files(again(payments(stage.events, stage.seed), stage.seed), stage.files))
    copies = sum(map(len, batches)) - stage.events - 1
    return quiet(stage, "delivered twice", f"{copies:,} copies", batches, deduplicate=True)


def beyond_the_watermark(stage: Stage) -> Outcome:
    """Events up to three times later than the watermark allows, and some exactly at it, which is not late."""
    batches = files(payments(stage.events, stage.seed, disorder=3 * DELAY), stage.files)
    number = stage.events
    for at, batch in enumerate(batches[1:], 1):
        seen = [event for each in batches[:at] for event in each]
        edge = max(event.at for event in seen if event.at is not None) - DELAY
        for when in (edge, edge - timedelta(milliseconds=1)):
            batch.append(replace(batch[0], n=number, at=when, type="PAY", amount=5.0))
            number += 1
    return quiet(stage, "beyond the watermark", f"{2 * (stage.files - 1)} at its edge", stage.deliver(batches))


def clock_jumps(stage: Stage) -> Outcome:
    """One clock is a day ahead for an event, another a day back: what follows the first is late, and reported."""
    batches = stage.plain
    middle = batches[2 * len(batches) // 3]
    middle[0] = replace(middle[0], at=(middle[0].at or START) + DAY)
    batches[-1][0] = replace(batches[-1][0], at=START - DAY)
    return quiet(stage, "clock jumps", "a day ahead, a day back", stage.deliver(batches))


def poisoned(stage: Stage) -> Outcome:
    """Records that are no JSON, without time, without card, with text for a number, and endless numbers."""
    batches = stage.plain
    victims = batches[1]
    victims[0] = replace(victims[0], at=None, type="PAY", amount=5.0)
    victims[1] = replace(victims[1], card=None)
    victims[2] = replace(victims[2], amount=None)
    garbage = (
        '{"n": 5, "type"',
        "\x00\xff\x00",
        '{"n": "x", "card": 3, "amount": "much", "at": "soon"}',
        "[]",
        '"',
        "{}",
    )
    delivered = stage.deliver(batches, *garbage)
    outcome = quiet(stage, "poisoned", f"{len(garbage) + 3} bad records", delivered)
    listed = victims[0].n in sink(stage.folder / "sink").late
    return outcome if listed else replace(outcome, lost=outcome.lost + 1, remark="the event without time is missing")


def quiet(stage: Stage, name: str, faults: str, batches: list[list[Event]], *, deduplicate: bool = False) -> Outcome:
    """One life that nobody disturbs."""
    life = Life(stage.folder)
    life.begin(stage.folder, deduplicate=deduplicate)
    remark = life.next().get("error", "")
    life.end()
    return judged(name, faults, batches, stage.folder, remark)


def everything_at_once(stage: Stage) -> Outcome:
    """The short form: copies, lateness, a bad record and a jump of the clock in one stream, killed on the way."""
    events = again(payments(stage.events, stage.seed, disorder=1.5 * DELAY), stage.seed)
    batches = files(events, stage.files)
    batches[1].append(replace(batches[1][0], n=stage.events, at=None))
    batches[-1].append(replace(batches[-1][0], n=stage.events + 1, at=START - DAY))
    delivered = stage.deliver(batches, "no JSON")
    return killed_on_the_way(stage, "everything at once", delivered, deduplicate=True)


SCENARIOS: dict[str, Scenario] = {
    "kills": driver_killed,
    "workers": workers_killed,
    "checkpoint": checkpoint_damaged,
    "disk": disk_full,
    "twice": delivered_twice,
    "watermark": beyond_the_watermark,
    "clock": clock_jumps,
    "poison": poisoned,
    "together": everything_at_once,
}
