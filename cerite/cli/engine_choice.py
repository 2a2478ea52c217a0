"""Which engine `--engine auto` means: Spark where one is configured or the input is large, else the local one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path

from cerite.cli.inputs import EngineChoice

LARGE = 8 << 30  # bytes from which reading on all cores is worth starting a session
_CONFIGURED = ("SPARK_REMOTE", "SPARK_MASTER", "PYSPARK_GATEWAY_PORT")


def picked(choice: EngineChoice, events: str, master: str | None, conf: Sequence[str]) -> tuple[EngineChoice, str]:
    """The engine and why."""
    if choice is not EngineChoice.auto:
        return choice, "as requested"
    if master or conf:
        return EngineChoice.spark, "--master or --conf is given"
    for name in _CONFIGURED:
        if os.environ.get(name):
            return EngineChoice.spark, f"{name} is set"
    size = _size(events)
    if size >= LARGE:
        return EngineChoice.spark, f"the input has {size / (1 << 30):.0f} GiB"
    return EngineChoice.local, "no Spark is configured and the input is not large"


def _size(events: str) -> int:
    """The bytes of the files that a path names; 0 for what is not a file."""
    paths = map(Path, glob(events) if has_magic(events) else [events])
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
    return sum(file.stat().st_size for file in files if file.is_file())
