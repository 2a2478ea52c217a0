"""What goes wrong, told so that the reader can mend it.

Every error of Cerite derives from `CeriteError` and carries data, not only text: the message, the query's source,
the span of characters it is about, and a hint. The text with the caret is made from that data, so a notebook, a
terminal and a test all see the same thing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

_CONTEXT = 100  # a query line longer than this is cut around the caret


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters `[start, end)` of a query's text."""

    start: int
    end: int

    def to(self, other: Span | None) -> Span:
        """The smallest span that covers both."""
        return self if other is None else Span(min(self.start, other.start), max(self.end, other.end))


class CeriteError(Exception):
    """Base class: what is wrong, where, and what to do.

    >>> print(CeriteError("no attribute `pirce`", source="x[pirce > 1]", span=Span(2, 7), hint="try `price`"))
    no attribute `pirce`
      x[pirce > 1]
        ^^^^^
    hint: try `price`
    """

    def __init__(
        self, message: str, *, source: str | None = None, span: Span | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.source = source
        self.span = span
        self.hint = hint

    @property
    def line(self) -> int | None:
        """The 1-based line the error points at, if it points anywhere."""
        if self.source is None or self.span is None:
            return None
        return self.source.count("\n", 0, self.span.start) + 1

    @property
    def column(self) -> int | None:
        """The 1-based column the error points at."""
        if self.source is None or self.span is None:
            return None
        return self.span.start - (self.source.rfind("\n", 0, self.span.start) + 1) + 1

    def at(self, source: str | None) -> CeriteError:
        """The same error, told about this source text if it does not know its own yet."""
        if self.source is None:
            self.source = source
        return self

    def __str__(self) -> str:
        parts = [self.message]
        if self.source is not None and self.span is not None:
            number = f" (line {self.line}, column {self.column})" if "\n" in self.source.strip() else ""
            parts[0] += number
            parts.extend(_underlined(self.source, self.span))
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class QuerySyntaxError(CeriteError):
    """The text is not a sentence of the language."""


class PatternError(CeriteError):
    """The text parses, but the pattern or query has no meaning here (unbound variable, NOT at the end, ...)."""


class SchemaError(CeriteError):
    """The query and the stream's columns do not fit: unknown event type or attribute, types that clash."""


class StreamError(CeriteError):
    """The data is not what the query needs (no time, a value of the wrong type, unsorted, ...)."""


class SnapshotError(CeriteError):
    """The bytes are no snapshot of this query's state: damaged, of another version, or of another query."""


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """`did you mean ...?` for the nearest known name, or None.

    >>> suggestion("pirce", ["price", "volume"])
    'did you mean `price`?'
    """
    names = sorted(set(known))
    folded = {candidate.casefold(): candidate for candidate in names}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f"did you mean `{folded[near[0]]}`?" if near else None


def listed(names: Iterable[str], limit: int = 8) -> str:
    """Names for a message: sorted, quoted, and cut when there are many.

    >>> listed(["b", "a"])
    '`a`, `b`'
    """
    ordered = sorted(names)
    text = ", ".join(f"`{name}`" for name in ordered[:limit])
    return text + (f" and {len(ordered) - limit} more" if len(ordered) > limit else "")


def _width(text: str) -> int:
    """Columns the text takes in a terminal: wide characters (CJK, emoji) take two, marks and joiners none."""
    invisible = ("Mn", "Me", "Cf")
    shown = (c for c in text if unicodedata.category(c) not in invisible)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in shown)


def _visible(line: str) -> str:
    """The line with each tab as one space and other control characters, which a terminal might obey, as �."""
    return "".join("�" if unicodedata.category(c) == "Cc" else c for c in line.replace("\t", " ").rstrip("\r"))


def _underlined(source: str, span: Span) -> list[str]:
    start = min(span.start, len(source))
    begin = source.rfind("\n", 0, start) + 1
    stop = source.find("\n", start)
    line = _visible(source[begin : len(source) if stop < 0 else stop])
    column = start - begin
    length = max(1, min(span.end, begin + len(line)) - start)
    left, right = 0, len(line)
    if len(line) > _CONTEXT:
        left = max(0, min(column - _CONTEXT // 2, len(line) - _CONTEXT))
        right = left + _CONTEXT
    shown = line[left:right]
    prefix = "…" if left else ""
    suffix = "…" if right < len(line) else ""
    marked = max(1, _width(line[column : min(column + length, right)]))
    return [f"  {prefix}{shown}{suffix}", "  " + " " * (_width(line[left:column]) + len(prefix)) + "^" * marked]
