"""The command line, run within the tests' process, and a small file and query for it."""

from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from unittest.mock import patch

from cerite.cli.main import main


@dataclass(frozen=True)
class Done:
    """The outcome of a command."""

    stdout: str
    stderr: str


def cerite(*arguments: str, code: int = 0) -> Done:
    """Run the command in this process; `test_the_installed_command` runs it as a user does."""
    out, err, ended = StringIO(), StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", ["cerite", *arguments]):
        try:
            main()
        except SystemExit as stop:
            ended = int(stop.code or 0)
    assert ended == code, err.getvalue()
    return Done(out.getvalue(), err.getvalue())


EVENTS = "type,price,at\nSELL,3.5,10\nBUY,4.5,20\nBUY,2.5,30\nBUY,9.0,90000\n"


UNARY = "SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER y[price > 4] WITHIN 30 seconds"
