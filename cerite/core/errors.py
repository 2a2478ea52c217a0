"""What goes wrong, said so that the reader can repair it.

Every error of Cerite derives from `CeriteError` and carries data, not only text: the message, the query's source,
the span of characters it is about, and a hint. The text with the caret is derived from that data, so a notebook, a
terminal and a test all see the same thing. A hint that advises an option names it as data too (`Setting`), so that
Python reads `time=…` and the command line `--time …`.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from rich.cells import cell_len

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_CONTEXT = 100  # a query line longer than this is cut around the caret
_LISTED = 8  # names that a message lists at most
ALIKE = "cast one of the columns, so that decimals are compared with decimals, or floats with floats"
"""The hint where two kinds of numbers cannot be compared exactly."""


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters `[start, end)` of a query's text."""

    start: int
    end: int

    def to(self, other: Span | None) -> Span:
        """The smallest span that covers both."""
        return self if other is None else Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Setting:
    """An option that a hint advises to set: a keyword in Python, `--option` on the command line.

    >>> str(Setting("time")), str(Setting("order_by", "at")), Setting("order_by", "at").on_command_line
    ('time=…', "order_by=['at']", '--order-by at')
    """

    name: str
    value: str | None = None

    def __str__(self) -> str:
        if self.name == "schema" and self.value is not None:
            column, _, kind = self.value.rpartition(":")
            return f"schema={{{column!r}: {kind!r}}}"
        value = "…" if self.value is None else repr(self.value)
        return f"{self.name}=[{value}]" if self.name in _LISTS else f"{self.name}={value}"

    @property
    def on_command_line(self) -> str:
        """The same as the command line spells it."""
        if self.name == "schema" and self.value is not None:
            column, _, kind = self.value.rpartition(":")
            return f'--schema with a file that says {{"{column}": "{kind}"}}'
        name = _OTHERWISE.get(self.name, self.name.replace("_", "-"))
        return f"--{name} {'…' if self.value is None else shlex.quote(self.value)}"


_LISTS = ("order_by", "null_values", "deduplicate")  # the options that take several names
_OTHERWISE = {"null_values": "null"}  # what the command line calls them, where it is not the same
_WRITTEN = re.compile(
    r"\b(?P<name>[a-z_]+)=(?:(?P<value>…|'[^']*')|\[(?P<listed>…|'[^']*')\]|"
    r"\{'(?P<column>[^']*)': '(?P<kind>[a-z]+)'\})"
)


class Hint(str):
    """A hint's text as Python spells its options, and the parts it consists of.

    >>> advice = Hint("name it: ", Setting("time"))
    >>> print(advice), print(advice.on_command_line)
    name it: time=…
    name it: --time …
    (None, None)
    """

    __slots__ = ("parts",)
    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: str | Setting) -> Hint:
        """A hint of these parts."""
        self = super().__new__(cls, "".join(map(str, parts)))
        self.parts = parts
        return self

    @classmethod
    def read(cls, text: str) -> Hint:
        """The hint whose text this is, e.g. one that comes back from another process as text.

        >>> print(Hint.read("name columns: order_by=['at'], or position=…").on_command_line)
        name columns: --order-by at, or --position …
        """
        parts: list[str | Setting] = []
        end = 0
        for setting in _WRITTEN.finditer(text):
            value = setting["value"] or setting["listed"] or f"'{setting['column']}:{setting['kind']}'"
            parts += [text[end : setting.start()], Setting(setting["name"], None if value == "…" else value[1:-1])]
            end = setting.end()
        return cls(*parts, text[end:])

    @property
    def on_command_line(self) -> str:
        """The text with options as the command line spells them."""
        return "".join(part.on_command_line if isinstance(part, Setting) else part for part in self.parts)

    def __reduce__(self) -> tuple[type[Hint], tuple[str | Setting, ...]]:
        return Hint, self.parts


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
        """The same error, pointing into this source text if it does not know its own yet."""
        if self.source is None:
            self.source = source
        return self

    def __str__(self) -> str:
        return self._text(self.hint)

    @property
    def on_command_line(self) -> str:
        """The text, with the options of its hint as the command line spells them."""
        return self._text(self.hint.on_command_line if isinstance(self.hint, Hint) else self.hint)

    def _text(self, hint: str | None) -> str:
        parts = [self.message]
        if self.source is not None and self.span is not None:
            number = f" (line {self.line}, column {self.column})" if "\n" in self.source.strip() else ""
            parts[0] += number
            parts.extend(_underlined(self.source, self.span))
        if hint:
            parts.append(f"hint: {hint}")
        return "\n".join(parts)


class QuerySyntaxError(CeriteError):
    """The text is not a sentence of the language."""


class PatternError(CeriteError):
    """The text parses, but the pattern or query has no meaning here (unbound variable, NOT at the end, ...)."""


class ArgumentError(CeriteError, TypeError, ValueError):
    """A clause or an argument is not what it must be."""


class SchemaError(CeriteError):
    """The query and the stream's columns do not fit: unknown event type or attribute, types that clash."""


class StreamError(CeriteError):
    """The data is not what the query needs (no time, a value of the wrong type, unsorted, ...)."""


class OrderError(StreamError):
    """An event comes behind one that was read before it, in the column `name`; `row` is its place in the batch."""

    def __init__(self, message: str, *, name: str = "", row: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.name, self.row = name, row


class SnapshotError(CeriteError):
    """The bytes are no snapshot of this query's state: damaged, of another version, or of another query."""


class BudgetError(CeriteError):
    """The query takes more states or memory than it may (`cerite.core.budget`)."""


class MissingExtraError(CeriteError, ImportError):
    """A package that is not installed with Cerite alone; the hint is the line that installs it."""


@contextmanager
def in_plain_words(task: str) -> Iterator[None]:
    """Memory that runs out is an error of Cerite, and Ctrl-C during a kernel's call is an interrupt again."""
    try:
        yield
    except MemoryError as error:
        raise StreamError(
            f"there is not enough memory to {task}",
            hint="give the query a window, a partition, LIMIT or a selection strategy; count() needs the least",
        ) from error
    except SystemError as error:
        if was_interrupted(error):
            raise KeyboardInterrupt from None
        raise


def was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: Numba's dispatcher turns what reaches it inside C code into a SystemError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


class CeriteWarning(UserWarning):
    """The query runs, but may not say what its writer meant: it names an event type that the data does not have."""


class LateWarning(CeriteWarning):
    """Events of a stream arrived behind its watermark and were not read; `stream.metrics` counts them."""


class TextWarning(CeriteWarning):
    """Text that looks like numbers or times is compared as text: '10' comes before '9', 20:00+01:00 after 19:30Z."""


def warn(warning: Warning) -> None:
    """Warn of something, in the name of the line outside of Cerite that led to it.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     warn(CeriteWarning("there is no such type"))
    >>> print(said[0].message)
    there is no such type
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def a(noun: str) -> str:
    """The noun with its article.

    >>> a("int"), a("string")
    ('an int', 'a string')
    """
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """`did you mean ...?` for the nearest known name, or None.

    >>> suggestion("pirce", ["price", "volume"])
    'did you mean `price`?'
    """
    names = sorted(set(known))
    folded = {candidate.casefold(): candidate for candidate in names}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f"did you mean `{folded[near[0]]}`?" if near else None


def unknown_column(name: str, known: Collection[str], use: str = "") -> StreamError:
    """That a stream has no column of this name; `use` says what it is needed for.

    >>> print(unknown_column("pirce", ["price", "volume"], " to sort by"))
    the stream has no column `pirce` to sort by
    hint: did you mean `price`?
    """
    return StreamError(
        f"the stream has no column `{name}`{use}", hint=suggestion(name, known) or f"it has {listed(known)}"
    )


def not_columns(role: str, given: object) -> StreamError:
    """That an option takes names of columns, and something else is given.

    >>> print(not_columns("order_by", 5))
    `order_by` names columns, not 5
    hint: write order_by=['…']
    """
    return StreamError(f"`{role}` names columns, not {given!r}", hint=f"write {role}=['…']")


_Error = TypeVar("_Error", bound=CeriteError)


def repeated_column(name: str, where: str, kind: type[_Error], span: Span | None = None) -> _Error:
    """That a name does not say which column is meant.

    >>> print(repeated_column("price", "the stream", StreamError))
    the stream: two columns are called `price`
    hint: rename one of them
    """
    return kind(f"{where}: two columns are called `{name}`", span=span, hint="rename one of them")


def unsortable(kinds: Mapping[str, object], error: BaseException) -> StreamError:
    """That events cannot be sorted by columns of these types, and what Arrow says about it.

    >>> print(unsortable({"at": "struct"}, TypeError("structs have no order")))
    the events cannot be sorted by `at` (struct): structs have no order
    """
    columns = ", ".join(f"`{name}` ({kind})" for name, kind in kinds.items())
    return StreamError(f"the events cannot be sorted by {columns}: {first_line(error)}")


def sum_too_large(what: str, span: Span | None = None) -> StreamError:
    """That a sum of whole numbers or decimals is beyond 64 bits.

    >>> print(sum_too_large("`SUM(y.v)`"))
    `SUM(y.v)` does not fit 64 bits
    hint: cast the column to float first, or add fewer events
    """
    return StreamError(
        f"{what} does not fit 64 bits", span=span, hint="cast the column to float first, or add fewer events"
    )


def suppress_without_time() -> StreamError:
    """That SUPPRESS has no times to compare.

    >>> print(suppress_without_time())
    SUPPRESS needs to know when events happen
    hint: name the column: time=…
    """
    return StreamError("SUPPRESS needs to know when events happen", hint=Hint("name the column: ", Setting("time")))


def first_line(error: BaseException) -> str:
    """The part of an Arrow message that is meant for people."""
    if isinstance(error, OverflowError):
        return "64 bits do not hold it"
    text = str(error).strip()
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__


def listed(names: Iterable[str]) -> str:
    """Names for a message: sorted, quoted, and cut when there are many.

    >>> listed(["b", "a"]), listed("abcdefghij")
    ('`a`, `b`', '`a`, `b`, `c`, `d`, `e`, `f`, `g`, `h` and 2 more')
    """
    ordered = sorted(names)
    text = ", ".join(f"`{name}`" for name in ordered[:_LISTED])
    return text + (f" and {len(ordered) - _LISTED} more" if len(ordered) > _LISTED else "")


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
    marked = max(1, cell_len(line[column : min(column + length, right)]))
    return [f"  {prefix}{shown}{suffix}", "  " + " " * (cell_len(line[left:column]) + len(prefix)) + "^" * marked]
