"""The import graph between Cerite's packages, drawn into docs/architecture.md: `python -m tests.layers --write`.

The layers themselves are in pyproject.toml and enforced by import-linter (`./dev lint`); the picture shows the imports.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: begin -->\n", "<!-- rooms: end -->\n"


def imports(module: Path) -> Iterator[str]:
    """The modules that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def edges() -> set[tuple[str, str]]:
    """Which package imports which."""
    package = ROOT / "cerite"
    rooms = {folder.name for folder in package.iterdir() if (folder / "__init__.py").exists()}
    pairs = {
        (room, name.split(".")[1])
        for room in rooms
        for module in (package / room).rglob("*.py")
        for name in imports(module)
        if name.startswith("cerite.")
    }
    return {(one, other) for one, other in pairs if one != other and other in rooms}


def direct(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The edges that no longer path replaces: the picture stays readable, and still shows who can reach whom."""

    def reaches(start: str, goal: str) -> bool:
        return any(other == goal or reaches(other, goal) for one, other in pairs if one == start)

    return {
        (one, other)
        for one, other in pairs
        if not any(reaches(between, other) for start, between in pairs if start == one and between != other)
    }


def picture() -> str:
    """The graph as Mermaid."""
    lines = [f"    {one} --> {other}" for one, other in sorted(direct(edges()))]
    return "```mermaid\ngraph TD\n" + "\n".join(lines) + "\n```\n"


def drawn(page: str) -> str:
    """The page with the current picture."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + picture() + END + rest.split(END)[1]


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(drawn(PAGE.read_text("utf-8")), "utf-8")
    else:
        print(picture())
