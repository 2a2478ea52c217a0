"""Java artifacts by their Maven names, fetched by the Ivy that PySpark brings, once; then they stay in a cache.

Where they cannot be had (no network, no Java), `UnavailableError` says why, and tests that need them skip with that.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from cerite.core.errors import CeriteError

BROKER = "org.apache.kafka:kafka_2.13:4.1.1"
# The connector of this Spark's own version is not always published yet: a set that works together.
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
LIMIT = 300  # seconds for one artifact with all that it needs


class UnavailableError(Exception):
    """Why the artifacts are not to be had."""


@cache
def java() -> str:
    """A Java that runs them."""
    from cerite.spark.sessions import ensure_java

    try:
        return ensure_java()
    except CeriteError as error:
        raise UnavailableError(f"no Java: {error.hint}") from None


@cache
def jars(coordinate: str, *, alone: bool = False) -> tuple[Path, ...]:
    """The files of `group:name:version` and, unless it is wanted alone, of all that it needs."""
    import pyspark

    group, name, version = coordinate.split(":")
    folder = _home() / f"{name}-{version}{'-alone' if alone else ''}"
    whole = folder / "whole"  # written last: a folder that was left half filled is filled again
    if not whole.exists():
        ivy = [java(), "-cp", f"{Path(pyspark.__file__).parent / 'jars'}/*", "org.apache.ivy.Main"]
        what = ["-dependency", group, name, version, "-confs", "default", "-types", "jar", "bundle"]
        to = ["-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
        try:
            done = subprocess.run(
                [*ivy, *what, *to, *(["-notransitive"] if alone else [])],
                capture_output=True, text=True, check=False, timeout=LIMIT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"{coordinate} was not fetched within {LIMIT} seconds") from None
        if not (folder / f"{name}-{version}.jar").exists():
            lines = (done.stdout + done.stderr).strip().splitlines()
            reason = next((line.strip() for line in lines if "not found" in line or "Exception" in line), "no network?")
            raise UnavailableError(f"{coordinate} cannot be fetched: {reason}")
        whole.touch()
    return tuple(sorted(folder.glob("*.jar")))


def connector() -> dict[str, str]:
    """The setting that gives a Spark session its Kafka connector."""
    files = [str(file) for each in CONNECTOR for file in jars(each, alone=True)]
    return {"spark.jars": ",".join(files)}


def _home() -> Path:
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cached / "cerite" / "jars"
