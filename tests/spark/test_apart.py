"""Spark Connect and several executor processes: the same results, also when an executor dies in mid-job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cerite.core.errors import CeriteError
from tests.spark.support import some_by_day

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", some_by_day(("connect", "connect-all", "kill", "cluster"), ("connect",)))
def test_differential_apart(kind: str, tmp_path: Path) -> None:
    from cerite.spark.sessions import ensure_java

    if kind.startswith("connect"):
        pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
    elif not Path("/proc").is_dir():
        pytest.skip("executors are found in /proc")
    try:
        ensure_java()
    except CeriteError as error:
        pytest.skip(f"no Java: {error.hint}")
    command = [sys.executable, "-m", "tests.spark.apart", kind, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert "the same matches" in done.stdout, done.stderr[-3000:]
