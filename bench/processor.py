"""Processor time of this process and all that it has started: driver, JVM, Python workers."""

from __future__ import annotations

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds() -> float:
    """The seconds so far, including those of processes that have ended."""
    processes: dict[int, tuple[int, int]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            fields = _fields(each)
            if fields:
                processes[int(each.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    mine, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, (parent, _) in processes.items() if parent in mine} - mine
        mine, grown = mine | more, bool(more)
    return sum(processes[pid][1] for pid in mine if pid in processes) / _TICK


def _fields(process: Path) -> list[str]:
    """State, parent, …, and from the 12th on: user and system time, its own and of its ended children."""
    try:
        return (process / "stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return []
