"""What ran where: the processor and the versions, without names of hosts or people."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import cerite


def machine() -> dict[str, str]:
    """The facts that go with every result."""
    facts = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load": _load(),
        "python": platform.python_version(),
    }
    return facts | {name: version(name) for name in ("numba", "numpy", "pyarrow", "polars")}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _load() -> str:
    try:
        return f"{os.getloadavg()[0]:.1f} before the run"
    except OSError:
        return "unknown"


def commit() -> str:
    """The commit that the working tree is at, and whether it has changes."""
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=Path(cerite.__file__).parent, capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return said.stdout.strip().replace("-dirty", " with changes")


def code() -> str:
    """A short digest of the package's sources; if it changes during a run, the run measured two different things."""
    digest = hashlib.sha256()
    for path in sorted(Path(cerite.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]
