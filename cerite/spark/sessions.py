"""A Spark session for those who have none: local by default, quiet, with a Java that works."""

from __future__ import annotations

import os
import socket
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from cerite.extras import load
from cerite.spark.java import ensure_java

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
