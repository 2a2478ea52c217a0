"""`cerite run`: matches on the terminal, as JSON lines, or in a file."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from cerite.errors import CeriteError
from cerite.results import Matches

_WRITERS = (".parquet", ".jsonl", ".ndjson", ".json", ".csv")


class Meter:
    """Progress on standard error: events per second, matches, active states; silent unless wanted or watched."""

    def __init__(self, console: Console, *, wanted: bool | None) -> None:
        self._console = console
        self.shown = wanted or (wanted is None and console.is_terminal)
        self._progress: Progress | None = None
        self._started = 0.0

    @contextmanager
    def of(self, total: int | None) -> Iterator[None]:
        """Show progress towards this many events."""
        if not self.shown:
            yield
            return
        columns = (SpinnerColumn(), BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=self._console, transient=True) as self._progress:
            self._progress.add_task("reading", total=total)
            self._started = clock.perf_counter()
            yield

    def tell(self, rows: int, matches: int, states: int) -> None:
        """The rows read and matches found so far, and how many states hold partial matches now."""
        if self._progress is not None:
            speed = rows / max(clock.perf_counter() - self._started, 1e-9)
            text = f"{rows:,} events, {speed:,.0f}/s, {matches:,} matches, {states:,} active states"
            self._progress.update(self._progress.task_ids[0], completed=rows, description=text)


def report(found: Matches, *, output: str | None, count: bool, events: bool, out: Console, err: Console) -> None:
    """Show or write the matches as the options say."""
    if count:
        print(found.count())
    elif output == "-":
        found.to_jsonl(sys.stdout, events=events)
    elif output is not None:
        written = write(found, Path(output), events=events)
        err.print(f"{written:,} matches written to {output}")
    else:
        total = found.count()
        out.print(found.table(20))
        out.print(f"{total:,} match{'' if total == 1 else 'es'}" + (", the first 20 shown" if total > 20 else ""))


def write(found: Matches, path: Path, *, events: bool) -> int:
    """Write the matches in the format of the file's ending."""
    ending = path.suffix.lower()
    if ending not in _WRITERS:
        raise CeriteError(f"unknown output format `{path.name}`", hint=f"the endings are {', '.join(_WRITERS)}, or `-`")
    if events and ending not in (".jsonl", ".ndjson", ".json"):
        raise CeriteError("--events goes with JSON lines", hint="write to a .jsonl file or to `-`")
    if ending == ".parquet":
        return found.to_parquet(path)
    return found.to_csv(path) if ending == ".csv" else found.to_jsonl(path, events=events)
