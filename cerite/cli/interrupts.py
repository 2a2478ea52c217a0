"""Ctrl-C, wherever it strikes: a line on standard error and the exit code that a shell expects."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from cerite.cli.live_run import Stopped
from cerite.core.errors import was_interrupted

INTERRUPTED = 130  # 128 + the number of SIGINT


class Commands(TyperGroup):
    """The commands; Ctrl-C ends one with a line and exit code 130, as a shell expects, wherever it strikes."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run a command."""
        with _noticing() as interrupts:
            try:
                return super().invoke(ctx)
            except BaseException as error:
                if not interrupts and not was_interrupted(error):
                    raise
                message = str(error) if isinstance(error, Stopped) else "interrupted"
                Console(stderr=True, soft_wrap=True, highlight=False).print(message)
                raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _noticing() -> Iterator[list[int]]:
    """Notes every Ctrl-C: Numba's compiler swallows some, and fails later with an error of its own."""
    noted: list[int] = []

    def notice(number: int, _: object) -> None:
        noted.append(number)
        raise KeyboardInterrupt

    if current_thread() is not main_thread():  # where signals are not handled
        yield noted
        return
    before = signal.signal(signal.SIGINT, notice)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
