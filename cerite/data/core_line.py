"""One event of CORE's text form, parsed with care: the slow way, which knows what is wrong and where.

Invariant: what is accepted is `type(name=value, …)` to the end of the line and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from cerite.errors import Span, StreamError
from cerite.names import unquoted

_NAME = re.compile(r"[^\W\d]\w*|`(?:[^`]|``)+`")
_VALUE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^,()\"']*")
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Attribute:
    """`name=value`; `quote` is the kind of quotes around the value, `start` and `end` where it is written."""

    name: str
    value: str
    quote: str
    start: int
    end: int


def parsed_line(line: str, where: str, reserved: str) -> tuple[str, list[Attribute]]:
    """The event type and the attributes; `reserved` is the column of the type, which no attribute may be called.

    >>> head, attributes = parsed_line("BUY(id=8, name='it''s')", "S", "type")
    >>> head, [(each.name, each.value) for each in attributes]
    ('BUY', [('id', '8'), ('name', "it's")])
    """
    reader = _Reader(line, where)
    head = reader.name("an event type")
    reader.sign("(", "`(` after the event type")
    attributes: list[Attribute] = []
    while not reader.next_is(")") or attributes:
        begin = reader.at
        name = reader.name("an attribute")
        if name == reserved:
            reader.fail(f"no attribute can be called `{name}`: it is the column of the event type", begin, reader.at)
        if any(name == each.name for each in attributes):
            reader.fail(f"attribute `{name}` is there twice", begin, reader.at)
        reader.sign("=", f"`=` after `{name}`")
        attributes.append(reader.value(name))
        if reader.next_is(")"):
            break
        reader.sign(",", "`,` or `)`")
    reader.sign(")", "`)`")
    if reader.at < len(line):
        reader.fail("there is text after the event", reader.at, len(line))
    return head, attributes


class _Reader:
    def __init__(self, line: str, where: str) -> None:
        self.line, self.where, self.at = line, where, 0
        self._skip()

    def name(self, what: str) -> str:
        found = _NAME.match(self.line, self.at)
        if found is None:
            self.fail(f"expected {what}", self.at, self.at + 1)
        self._to(found.end())
        return unquoted(found[0])

    def next_is(self, sign: str) -> bool:
        return self.line.startswith(sign, self.at)

    def sign(self, sign: str, what: str) -> None:
        if not self.next_is(sign):
            self.fail(f"expected {what}", self.at, self.at + 1)
        self._to(self.at + 1)

    def value(self, name: str) -> Attribute:
        found = _VALUE.match(self.line, self.at)
        if found is None or (found[0] == "" and self.line[self.at : self.at + 1] in ("'", '"')):
            self.fail(f"the quote of `{name}` is not closed", self.at, len(self.line))
        start, end, text = found.start(), found.end(), found[0]
        quote = text[:1] if text[:1] in ("'", '"') else ""
        self._to(end)
        value = text[1:-1].replace(quote * 2, quote) if quote else text.strip()
        return Attribute(name, value, quote, start, end)

    def fail(self, message: str, start: int, end: int) -> NoReturn:
        raise StreamError(
            f"{self.where}: {message}",
            source=self.line,
            span=Span(start, end),
            hint="one event a line, such as BUY(id=8,name=INTC,price=12.5)",
        )

    def _to(self, at: int) -> None:
        self.at = at
        self._skip()

    def _skip(self) -> None:
        found = _SPACE.match(self.line, self.at)
        self.at = self.at if found is None else found.end()
