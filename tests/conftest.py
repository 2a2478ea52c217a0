"""Random tests are short in CI runs and long in nightly runs: `-m nightly` runs all of them on many more cases."""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest

from tests import schedule, telling

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for the short jobs of tests: starts faster, and compiles less


def pytest_configure(config: pytest.Config) -> None:
    """Set what tests need to know when they are imported, because that is when they choose how many cases to draw."""
    telling.at_night = config.getoption("markexpr") == "nightly"
    os.environ.setdefault("JDK_JAVA_OPTIONS", JAVA)


def pytest_itemcollected(item: pytest.Item) -> None:
    """In a nightly run, mark every test that draws cases as nightly."""
    function = getattr(item, "obj", None)
    drawing = getattr(function, "is_hypothesis_test", False) or getattr(function, "draws_cases", False)
    if telling.at_night and drawing:
        item.add_marker("nightly")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # a worker of xdist; without workers, tests keep their order
        items.sort(key=lambda item: schedule.place(item.nodeid))


def pytest_collection_finish() -> None:
    """What is there by now stays to the end: Python need not look for garbage in it again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> schedule.ByFile:
    config.option.loadscopereorder = False
    return schedule.ByFile(config, log)
