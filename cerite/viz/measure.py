"""Sizes: how much room text takes in a monospaced font, and the constants of the SVG picture, in pixels."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from cerite.viz.edges import Line

RADIUS, WIDEST = 18.0, 32.0  # of a state: the least and the most
PORT = 7.0  # between edges that meet a state on the same side
FONT = 12.0
CELL = 7.3  # the width of a character at that size
LINE = 15.0  # the height of a line of text
REACH = 0.8  # of the radius: how far above or below the middle of a state an edge may meet it
LOOP = 24.0  # the height of a self-loop above its state
LIFT = 5.0  # between an edge and the text on it
TAB = 3.0  # between the text of an edge inside a column and the edge around it
GAP = 8.0  # between things in the same column
READS, MARKS = 28, 16  # the longest texts shown, in cells


def cells(text: str) -> int:
    """The width of the text in character cells, as terminals and monospaced fonts show it.

    >>> cells("price"), cells("日本"), cells("e\\u0301")
    (5, 4, 1)
    """
    return sum(_cell(c) for c in text)


def shown(line: Line) -> Line:
    """The line as a label shows it: on one line, and not too long.

    >>> print(shown(Line("price > 100 AND volume < 20 AND name = 'X'", "x", True)))
    price > 100 AND volume < 20… / x
    """
    return Line(_cut(line.reads, READS), _cut(line.marks, MARKS), line.marked)


def text_width(lines: Sequence[Line]) -> float:
    """The width of the widest line, with a little air on both sides."""
    return CELL * max(cells(str(shown(line))) for line in lines) + 8


def _cut(text: str, most: int) -> str:
    text = " ".join(text.split())
    if cells(text) <= most:
        return text
    kept = ""
    for c in text:
        if cells(kept + c) > most - 1:
            break
        kept += c
    return kept.rstrip() + "…"


def _cell(c: str) -> int:
    if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1
