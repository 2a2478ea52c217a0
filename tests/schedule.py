"""Which tests go to one worker, and in which order: pytest-xdist's schedule (`pytest -n auto`).

A file's tests stay together: two workers that share a file both compile its kernels, and on an empty cache compiling is
a good part of the time. Spark's tests are one session's and wait a lot, so they come first, beside tests that compute;
among them those that need most kernels last, when the others have compiled them. Then come the folders whose files take
long, so that no worker is left alone with one of them at the end. Tests that start Spark in processes of their own go
to another worker, when the kernels are there: one session would be busy for longest.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

OWN_PROCESSES = (
    "tests/chaos/", "tests/kafka/",
    *(f"tests/spark/test_{name}.py" for name in ("apart", "live_example")),
)  # fmt: skip
MANY_KERNELS = ("tests/spark/test_corpus.py", "tests/spark/test_random.py")
LONGEST_FIRST = ("tests/properties/", OWN_PROCESSES, "tests/srt/", "tests/faults/", "tests/examples/")


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Units of work are files, and all tests of one Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(OWN_PROCESSES):
            return "spark in processes of its own"
        return "spark" if nodeid.startswith("tests/spark/") else nodeid.partition("::")[0]


def place(nodeid: str) -> int:
    """Where a test stands in the order."""
    if nodeid.startswith("tests/spark/") and not nodeid.startswith(OWN_PROCESSES):
        return int(nodeid.startswith(MANY_KERNELS))
    folders: tuple[str | tuple[str, ...], ...] = LONGEST_FIRST
    return next((at for at, folder in enumerate(folders, 2) if nodeid.startswith(folder)), 9)
