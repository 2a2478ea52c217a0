"""Warnings on standard error: those of a check and those that come up while a query runs look alike.

Invariant: what comes up is said once, with options as the command line spells them; warnings of others are left alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from cerite.core.errors import CeriteError, CeriteWarning, Hint
from cerite.pattern.check import Note


@contextmanager
def warnings_on(err: Console) -> Iterator[None]:
    """Print Cerite's own warnings as they come up."""
    said: set[str] = set()
    with warnings.catch_warnings():
        plain = warnings.showwarning

        def show(message: Warning | str, *where: Any, **more: Any) -> None:
            if not isinstance(message, CeriteWarning):
                plain(message, *where, **more)
                return
            text = Hint.read(str(message)).on_command_line
            if text not in said:
                _print(text, err)
            said.add(text)

        warnings.showwarning = show
        warnings.simplefilter("always", CeriteWarning)
        yield


def print_note(note: Note, source: str | None, err: Console) -> None:
    """Print a warning of a check, with the place in the query."""
    _print(str(CeriteError(note.message, source=source, span=note.span, hint=note.hint)), err)


def _print(text: str, err: Console) -> None:
    err.print(Text("warning: ", style="bold yellow").append(text, style="default"))
