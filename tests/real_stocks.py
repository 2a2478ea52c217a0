"""The real stock stream and the matches that CORE and Wayeb report on it, where environment variables say they are.

CERITE_STOCKS names the Parquet file, CERITE_EXPECTED the folder of the matches; neither is part of the project.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

STOCKS = Path(os.environ.get("CERITE_STOCKS", ""))
EXPECTED = Path(os.environ.get("CERITE_EXPECTED", ""))
needs_stocks = pytest.mark.skipif(not STOCKS.is_file(), reason="CERITE_STOCKS does not name the file of stock events")
needs_expected = pytest.mark.skipif(
    "CERITE_EXPECTED" not in os.environ or not EXPECTED.is_dir(),
    reason="CERITE_EXPECTED does not name the folder of the matches that other engines report",
)


def reported(name: str) -> list[tuple[int, ...]]:
    """The positions of the matches in a file of other engines' matches."""
    return [tuple(map(int, line.split(","))) for line in (EXPECTED / name).read_text("utf-8").split()]
