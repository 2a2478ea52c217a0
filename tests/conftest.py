"""Random tests are short with every change and long at night: `-m nightly` runs all of them on many more cases."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests import schedule, telling

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for tests, of short jobs: starts faster, and compiles less


def pytest_configure(config: pytest.Config) -> None:
    """Before the tests are imported, which is when they say how often they run."""
    telling.at_night = config.getoption("markexpr") == "nightly"
    os.environ.setdefault("JDK_JAVA_OPTIONS", JAVA)


def pytest_itemcollected(item: pytest.Item) -> None:
    """What draws cases is a test of the night, too."""
    function = getattr(item, "obj", None)
    drawing = getattr(function, "is_hypothesis_test", False) or getattr(function, "draws_cases", False)
    if telling.at_night and drawing:
        item.add_marker("nightly")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # of xdist; who runs tests one by one has them in the order named
        items.sort(key=lambda item: schedule.place(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> schedule.ByFile:
    config.option.loadscopereorder = False
    return schedule.ByFile(config, log)
