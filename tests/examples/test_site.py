"""The docs site builds, without network, and no link in it leads nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the docs site is built with the dev extra")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    api = (tmp_path / "site" / "api.html").read_text("utf-8")
    assert all(f'id="cerite.{name}"' in api for name in __import__("cerite").__all__), "every public name has its entry"
