"""Pictures of state machines as text: a plain table, Mermaid and Graphviz DOT, and SVG where Graphviz is installed.

What can be drawn says so by its `Diagram`; nothing here knows automata or transducers. Every format holds any name and
condition: characters that mean something to a format, or that it cannot hold, are escaped.
Invariant: each transition's text is in every format, and equal diagrams give equal text.
"""

from __future__ import annotations

import string
from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from cerite.core.errors import ArgumentError, CeriteError, MissingExtraError
from cerite.core.extras import load

UNMARKED = "∘"
MOST_MERMAID, LONGEST_MERMAID = 500, 50_000  # Mermaid's own limits of arrows and characters: it draws nothing larger
MOST_LAID_OUT = 200  # arrows that a notebook waits for: `dot` may take minutes for more
_MERMAID_PLAIN = frozenset(string.ascii_letters + string.digits + " ,/()=+'!?")


@dataclass(frozen=True, slots=True)
class Arrow:
    """One transition: the condition it reads as text, and what it marks the event with, empty if nothing."""

    source: int
    reads: str
    marks: str
    target: int

    @property
    def text(self) -> str:
        """What is written on the arrow."""
        return f"{_printable(self.reads)} / {_printable(self.marks) or UNMARKED}"


@dataclass(frozen=True, slots=True)
class Diagram:
    """States 0 to n - 1 and the arrows between them."""

    n_states: int
    start: int
    finals: frozenset[int]
    arrows: tuple[Arrow, ...]

    def edges(self) -> dict[tuple[int, int], list[str]]:
        """The texts between two states, by source and target; transitions share an edge, and equal texts appear once.

        >>> Diagram(2, 0, frozenset({1}), (Arrow(0, "B", "", 1), Arrow(0, "A", "x", 1), Arrow(0, "B", "", 1))).edges()
        {(0, 1): ['B / ∘', 'A / x']}
        """
        edges: dict[tuple[int, int], dict[str, None]] = {}
        for arrow in self.arrows:
            edges.setdefault((arrow.source, arrow.target), {})[arrow.text] = None
        return {ends: list(edges[ends]) for ends in sorted(edges)}


class Drawable(ABC):
    """Anything with a diagram: printed as a table, shown in a notebook as a picture."""

    @abstractmethod
    def diagram(self) -> Diagram:
        """The states and transitions to draw."""

    def __str__(self) -> str:
        """A table with a row per transition, by source; a state that no transition leaves has a row of its own."""
        diagram = self.diagram()
        leaving: dict[int, list[tuple[str, str, str]]] = {}
        for arrow in diagram.arrows:
            marks = _one_line(arrow.marks) or UNMARKED
            leaving.setdefault(arrow.source, []).append((_one_line(arrow.reads), marks, f"q{arrow.target}"))
        names = max(5, len(f"q{diagram.n_states - 1}"))
        rows: list[tuple[str, ...]] = [("state", "reads", "marks", "goes to")]
        for state in range(diagram.n_states):
            flags = ("start", state == diagram.start), ("final", state in diagram.finals)
            first = f"{f'q{state}':<{names}}  {','.join(word for word, holds in flags if holds)}"
            for k, columns in enumerate(leaving.get(state, [("-", "-", "-")])):
                rows.append((first if k == 0 else "", *columns))
        return _aligned(rows)

    def mermaid(self) -> str:
        """A Mermaid flowchart, which GitHub, MkDocs and JupyterLab draw; final states are double circles.

        Whatever Mermaid might read as its own syntax is written as a character code.

        >>> class Step(Drawable):
        ...     def diagram(self):
        ...         return Diagram(2, 0, frozenset({1}), (Arrow(0, "price > 1", "x", 1),))
        >>> print(Step().mermaid(), end="")
        flowchart LR
            start[ ] --> q0
            q0(("q0"))
            q1((("q1")))
            q0 -->|"price #62; 1 / x"| q1
            style start fill:none,stroke:none
        """
        diagram = self.diagram()
        rows = [f"start[ ] --> q{diagram.start}"]
        for state in range(diagram.n_states):
            left, right = ("(((", ")))") if state in diagram.finals else ("((", "))")
            rows.append(f'q{state}{left}"q{state}"{right}')
        for (source, target), texts in diagram.edges().items():
            rows.append(f'q{source} -->|"{"<br/>".join(map(mermaid_escaped, texts))}"| q{target}')
        rows.append("style start fill:none,stroke:none")
        return "flowchart LR\n" + "".join(f"    {row}\n" for row in rows)

    def dot(self) -> str:
        """A digraph for Graphviz (`dot -Tsvg`); final states are double circles.

        >>> class Step(Drawable):
        ...     def diagram(self):
        ...         return Diagram(2, 0, frozenset({1}), (Arrow(0, "price > 1", "x", 1),))
        >>> print(Step().dot(), end="")
        digraph automaton {
            rankdir=LR;
            bgcolor="transparent";
            node [shape=circle];
            start [shape=point, style=invis, width=0];
            q0 [label="q0"];
            q1 [label="q1", shape=doublecircle];
            start -> q0;
            q0 -> q1 [label="price > 1 / x"];
        }
        """
        diagram = self.diagram()
        rows = ["rankdir=LR;", 'bgcolor="transparent";', "node [shape=circle];"]
        rows.append("start [shape=point, style=invis, width=0];")
        for state in range(diagram.n_states):
            shape = ", shape=doublecircle" if state in diagram.finals else ""
            rows.append(f'q{state} [label="q{state}"{shape}];')
        rows.append(f"start -> q{diagram.start};")
        for (source, target), texts in diagram.edges().items():
            label = "\\n".join(map(_dot_escaped, texts))
            rows.append(f'q{source} -> q{target} [label="{label}"];')
        return "digraph automaton {\n" + "".join(f"    {row}\n" for row in rows) + "}\n"

    def svg(self) -> str:
        """The picture as SVG, laid out by Graphviz; a `MissingExtraError` says what to install if that is missing."""
        graphviz = load("graphviz")
        try:
            return str(graphviz.Source(self.dot()).pipe(format="svg", encoding="utf-8", quiet=True))
        except graphviz.ExecutableNotFound as missing:
            raise MissingExtraError(
                "a picture as SVG needs Graphviz's program `dot`, which is not on the PATH",
                hint="apt install graphviz, brew install graphviz, or https://graphviz.org/download; "
                "`.mermaid()` and `.dot()` need nothing",
            ) from missing
        except graphviz.CalledProcessError as failure:  # a text of more than 16,384 bytes, say
            raise CeriteError(f"Graphviz does not draw this: {failure.stderr.strip()}") from failure

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the picture in the form of the file's ending: .svg, .dot, .mmd (Mermaid), .txt (the table)."""
        forms = {".svg": self.svg, ".dot": self.dot, ".gv": self.dot, ".mmd": self.mermaid, ".txt": self.__str__}
        target = picture_file(path, forms)
        target.write_text(forms[target.suffix.lower()](), "utf-8")
        return target

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """What notebooks choose from: the table always, Mermaid and, if Graphviz is installed, SVG unless too large."""
        bundle = {"text/plain": str(self)}
        arrows, flowchart = len(self.diagram().edges()), self.mermaid()
        if arrows < MOST_MERMAID and len(flowchart) <= LONGEST_MERMAID:  # one more arrow leads to the start
            bundle["text/vnd.mermaid"] = flowchart
        if arrows <= MOST_LAID_OUT:
            with suppress(CeriteError):  # the other forms need nothing that could be missing
                bundle["image/svg+xml"] = self.svg()
        return bundle


def picture_file(path: str | PathLike[str], endings: Collection[str]) -> Path:
    """The file that a picture is written to; refused if it has none of these endings."""
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise ArgumentError(f"`{target.name}` is not a picture file", hint=f"end it in {', '.join(endings)}")
    return target


def _aligned(rows: list[tuple[str, ...]]) -> str:
    """Columns by the width that terminals show, the first row underlined."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    rows = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    padded = (
        "  ".join(text + " " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(row.rstrip() for row in padded)


def mermaid_escaped(text: str) -> str:
    return "".join(c if c in _MERMAID_PLAIN else "<br/>" if c == "\n" else f"#{ord(c)};" for c in text)


def _dot_escaped(text: str) -> str:
    """Text inside double quotes; Graphviz reads entities in labels, so `&` is escaped as one."""
    for plain, safe in (("\\", "\\\\"), ('"', '\\"'), ("&", "&amp;"), ("\n", "\\n")):
        text = text.replace(plain, safe)
    return text


def _one_line(text: str) -> str:
    """Printable text with its line breaks and tabs, too, written as escapes."""
    return "".join(_escape(c) if c in "\n\t\x85\u2028\u2029" else c for c in _printable(text))


def _printable(text: str) -> str:
    """The text with characters that no format can hold (controls, lone surrogates) written as escapes."""
    return "".join(c if _holdable(c) else _escape(c) for c in text)


def _escape(c: str) -> str:
    return c.encode("unicode_escape").decode("ascii")


def _holdable(c: str) -> bool:
    code = ord(c)
    if code < 0x20:
        return c in "\n\t"
    return not (0x7F <= code < 0xA0 and code != 0x85) and not 0xD800 <= code < 0xE000 and code not in (0xFFFE, 0xFFFF)
