"""Pictures in the docs, drawn by Cerite itself: `python -m tests.pictures --write`.

A line `<!-- picture: cerite.query("…").draw() -->` stands before a Mermaid block, and the block is what the expression
draws. So a picture cannot show anything but what the engine does.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import cerite
from cerite.testing import events

DOCS = Path(__file__).parents[1] / "docs"
_PICTURE = re.compile(r"^(<!-- picture: ([^\n]+) -->\n\n)```mermaid\n.*?```$", re.M | re.S)


def pages() -> list[Path]:
    """The pages that have pictures."""
    return [path for path in sorted(DOCS.glob("*.md")) if _PICTURE.search(path.read_text("utf-8"))]


def drawn(page: str) -> str:
    """The page with its current pictures."""

    def put_in(place: re.Match[str]) -> str:
        picture = eval(place[2], {"cerite": cerite, "events": events})  # our own docs
        return f"{place[1]}```mermaid\n{picture.mermaid()}```"

    return _PICTURE.sub(put_in, page)


if __name__ == "__main__":
    for path in pages():
        text = drawn(path.read_text("utf-8"))
        if "--write" in sys.argv[1:]:
            path.write_text(text, "utf-8")
        else:
            print(f"{path.name}: {'as drawn' if text == path.read_text('utf-8') else 'run with --write'}")
