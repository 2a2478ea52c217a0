"""Which tests go to one worker, and in which order: pytest-xdist's schedule (`pytest -n auto`).

A file's tests stay together: two workers that share a file both compile its kernels, and on an empty cache compiling is
a good part of the time. Spark's tests are one session's and wait a lot, so they come first, beside tests that compute;
among them those that need most kernels last, when the others have compiled them. Then come the folders whose files take
long, so that no worker is left alone with one of them at the end.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

SPARK = ("tests/spark/", "tests/chaos/", "tests/kafka/")
MANY_KERNELS = ("tests/chaos/", *(f"tests/spark/test_{name}.py" for name in ("apart", "corpus", "random")))
LONGEST_FIRST = ("tests/properties/", "tests/srt/", "tests/faults/", "tests/examples/")


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Units of work are files, and all of Spark's tests."""

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.startswith(SPARK) else nodeid.partition("::")[0]


def place(nodeid: str) -> int:
    """Where a test stands in the order."""
    if nodeid.startswith(SPARK):
        return int(nodeid.startswith(MANY_KERNELS))
    return next((at for at, folder in enumerate(LONGEST_FIRST, 2) if nodeid.startswith(folder)), 9)
