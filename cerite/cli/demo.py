"""`cerite demo`: a bundled dataset, its query, and the matches found, checked against those that were planted."""

from __future__ import annotations

import time as clock
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.text import Text

from cerite.api.query import query
from cerite.cli.recognise import Meter, count_line
from cerite.core.errors import CeriteError
from cerite.datasets import NAMES, Dataset, load


def demo(name: str, *, rows: int, seed: int, show: int, save: str | None, out: Console, err: Console) -> None:
    """Load a dataset, run its query and show what it finds; with `save`, also write both into a folder."""
    data = load(name, rows=rows, seed=seed)
    saved = None if save is None else _saved(data, Path(save))  # before anything is printed, which may be cut short
    out.print(Text(f"{data.name}: {data.about}\n{_size(data)}\n\n{data.query}\n"))
    meter = Meter(err, wanted=None)
    matches = query(data.query).run(data.events, time=data.time, progress=meter.tell)
    started = clock.perf_counter()
    with meter.of(matches.rows):
        matches.exists()  # compiles the kernels, which happens at the first event
        compiled = clock.perf_counter()
        out.print(matches.table(show))
        positions = sorted(match.positions for match in matches)  # counting would compile kernels of its own
    took = f"{clock.perf_counter() - compiled:.2f} s, after {compiled - started:.1f} s until the first"
    out.print(f"{count_line(len(positions), show)}, {_checked(data, positions)}; {took}")
    if saved is not None:
        out.print(Text(saved))
    others = ", ".join(each for each in NAMES if each != name)
    out.print(f"\nIn Python: data = cerite.datasets.load({name!r}); others: {others}")


def _size(data: Dataset) -> str:
    at = data.events[data.time]
    planted = len(data.planted)
    span = f"{at[0].as_py():%d %B %H:%M} to {at[-1].as_py():%d %B %H:%M}"
    return f"{data.events.num_rows:,} events, {span}; {planted:,} match{'' if planted == 1 else 'es'} planted"


def _checked(data: Dataset, positions: list[tuple[int, ...]]) -> str:
    """Confirm in words that the matches are those that were planted; refuse others."""
    if positions == sorted(data.planted):
        return "exactly those that were planted"
    raise CeriteError(f"the matches are not those that were planted in {data.name}", hint="please report this")


def _saved(data: Dataset, folder: Path) -> str:
    """Write events and query as files that `cerite run` takes, and say so; what is there is not replaced."""
    events, text = folder / f"{data.name}.parquet", folder / f"{data.name}.ceql"
    for path in (events, text):
        if path.exists():
            raise CeriteError(f"`{path}` exists already", hint="name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(data.events, events)
    text.write_text(data.query + "\n", "utf-8")
    return f"saved; next: cerite run {text} {events} --time {data.time}"
