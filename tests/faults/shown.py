"""Which of the texts that a module has for its users no golden message shows.

A text is a string with a space in it, or each fixed part of one with values in it. Docstrings, assertions, what
another text is compared with, and notes (which accompany a query that is accepted) are none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def texts_of(module: str) -> Iterator[str]:
    """The texts of a module, given by its file."""
    yield from _texts(ast.parse((ROOT / module).read_text("utf-8")))


def never_shown(module: str, messages: Iterable[str]) -> list[str]:
    """The texts of a module that none of the messages contains, wherever these break lines."""
    everything = "\n".join(map(_in_one_line, messages))
    return [text for text in texts_of(module) if _in_one_line(text) not in everything]


def _texts(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Assert():
            return
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re")) | ast.Name(id="Note")):
            return
        case ast.Call(func=ast.Attribute(attr="startswith")):
            return
        case ast.Constant(value=str(text)) if " " in text.strip():
            yield text
    for child in ast.iter_child_nodes(node):
        yield from _texts(child)


def _in_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)
