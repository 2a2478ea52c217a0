"""One Spark session per pytest process; all tests here go to one worker (tests/schedule.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cerite.core.errors import CeriteError


@pytest.fixture
def quick(spark: Any) -> Iterator[Any]:
    """The session for many tiny jobs: compiling a query would take longer than running it."""
    names = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
             "spark.sql.adaptive.enabled": "false", "spark.sql.caseSensitive": "true",
             "spark.sql.leafNodeDefaultParallelism": "1"}  # fmt: skip
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from cerite.spark import session
    from cerite.spark.sessions import ensure_java

    try:
        ensure_java()
    except CeriteError as error:
        pytest.skip(f"no Java: {error.hint}")
    started = session(
        "local[2]",
        conf={
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "America/St_Johns",
            "spark.python.sql.dataFrameDebugging.enabled": "false",  # tells Java the line of every call
        },
    )
    yield started
    started.stop()
