"""Runs the notebooks in examples/ and stores their outputs in them: `python -m tests.notebooks --write`.

A cell is plain Python. What it prints and the value of its last expression are its output, as in Jupyter; nothing of
Jupyter is needed. Tests compare the text of every output with the stored one.
"""

from __future__ import annotations

import ast
import base64
import json
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from cerite.api.timeline import Timeline

FOLDER = Path(__file__).parents[1] / "examples"
Cell = dict[str, Any]


def notebooks() -> list[Path]:
    """The notebooks among the examples."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    """A notebook's document."""
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return document


def code_cells(document: dict[str, Any]) -> list[Cell]:
    """The cells that are run."""
    return [cell for cell in document["cells"] if cell["cell_type"] == "code"]


def run(document: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of the code cells, run one after the other."""
    space: dict[str, Any] = {"__name__": "__main__"}
    return [outputs("".join(cell["source"]), space, number) for number, cell in enumerate(code_cells(document), 1)]


def outputs(source: str, space: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, and the value of its last expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = StringIO(), None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"<cell {number}>", "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"<cell {number}>", "eval"), space)
    shown = [{"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())}] if printed.tell() else []
    if value is None:
        return shown
    return [
        *shown,
        {"output_type": "execute_result", "execution_count": number, "data": forms(value), "metadata": {}},
    ]


def forms(value: Any) -> dict[str, Any]:
    """A value as text and, if it has that form, as HTML; a timeline as a picture, which needs no script."""
    bundle: dict[str, Any] = {"text/plain": lines(repr(value))}
    if isinstance(value, Timeline):
        with tempfile.TemporaryDirectory() as folder:
            picture = value.save(Path(folder) / "picture.png").read_bytes()
        bundle["image/png"] = base64.b64encode(picture).decode("ascii")
    elif hasattr(value, "_repr_html_"):
        bundle["text/html"] = lines(value._repr_html_())
    return bundle


def lines(text: str) -> list[str]:
    """Text as notebooks hold it."""
    return text.splitlines(keepends=True)


def texts(cell_outputs: list[dict[str, Any]]) -> list[str]:
    """The text of a cell's outputs."""
    return ["".join(each.get("text", each.get("data", {}).get("text/plain", ""))) for each in cell_outputs]


def written(path: Path) -> None:
    """Store a notebook's current outputs in it."""
    document = read(path)
    for number, (cell, shown) in enumerate(zip(code_cells(document), run(document), strict=True), 1):
        cell["outputs"], cell["execution_count"] = shown, number
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    for notebook in notebooks():
        if "--write" in sys.argv:
            written(notebook)
        print(notebook.name)
