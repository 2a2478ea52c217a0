"""From text to a parse tree, and from the parser's errors to ours.

Both languages share the grammar of conditions (`shared.lark`). A tree deeper than `MAX_DEPTH` is refused before
anything recursive looks at it, so no query can exhaust the stack.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeVar

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from cerite.errors import QuerySyntaxError, Span, suggestion
from cerite.names import KEYWORDS
from cerite.pattern.base import Pattern
from cerite.predicate.expression import Expression

T = TypeVar("T", Expression, Pattern)
MAX_DEPTH = 200
MAX_LENGTH = 1_000_000
Node = Tree[Token]
_CLOSING = {")": "(", "]": "[", "}": "{"}
_PUNCTUATION = {
    "RPAR": "`)`", "LPAR": "`(`", "RSQB": "`]`", "LSQB": "`[`", "RBRACE": "`}`", "BRACE": "`{`", "SEMICOLON": "`;`",
    "COLON": "`:`", "COMMA": "`,`", "NAME": "a name", "INT": "a number", "STRING": "a string",
}  # fmt: skip


@lru_cache(maxsize=4)
def _parser(grammar: str, starts: tuple[str, ...]) -> Lark:
    folder = files("cerite.language")
    text = folder.joinpath(f"{grammar}.lark").read_text("utf-8") + folder.joinpath("shared.lark").read_text("utf-8")
    return Lark(text, parser="lalr", start=list(starts), propagate_positions=True, maybe_placeholders=False)


def parse(text: str, grammar: str, starts: tuple[str, ...], start: str) -> Node:
    """The parse tree of the text, or a `QuerySyntaxError` that points at the first character that does not fit."""
    if not isinstance(text, str):
        raise TypeError(f"a query is text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise QuerySyntaxError(f"the query has {len(text):,} characters; at most {MAX_LENGTH:,} are read")
    if not text.strip():
        raise QuerySyntaxError("the query is empty", hint="a query is SELECT … FROM … WHERE …")
    try:
        tree = _parser(grammar, starts).parse(text, start=start)
    except UnexpectedInput as error:
        raise _translated(error, text) from None
    _check_depth(tree, text)
    return tree


def span_of(node: Node | Token) -> Span | None:
    """Where the node stands in the text."""
    if isinstance(node, Token):
        return Span(node.start_pos or 0, node.end_pos or 0)
    meta = node.meta
    return None if meta.empty else Span(meta.start_pos, meta.end_pos)


def placed(made: T, node: Node) -> T:
    """What was made of a node, with the node's place unless it has one of its own."""
    if made.span is None:
        object.__setattr__(made, "span", span_of(node))
    return made


def subtree(node: Any) -> Node:
    """The node, known to be a tree."""
    assert isinstance(node, Tree), node
    return node


def _check_depth(tree: Node, text: str) -> None:
    stack: list[tuple[Node, int]] = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise QuerySyntaxError(
                f"nested more than {MAX_DEPTH} levels deep",
                source=text, span=span_of(node), hint="remove parentheses that are not needed, or split the query",
            )  # fmt: skip
        stack.extend((child, depth + 1) for child in node.children if isinstance(child, Tree))


def _translated(error: UnexpectedInput, text: str) -> QuerySyntaxError:
    unbalanced = _unbalanced(text)
    if unbalanced is not None:
        return unbalanced
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        end = len(text.rstrip())
        return QuerySyntaxError(
            "the query ends too early", source=text, span=Span(end, end + 1), hint=_expected(error, None)
        )
    if isinstance(error, UnexpectedToken):
        start = error.token.start_pos or 0
        word = str(error.token)
    else:
        assert isinstance(error, UnexpectedCharacters)
        start = error.pos_in_stream or 0
        word = _word_at(text, start)
    return QuerySyntaxError(
        f"unexpected `{word}`", source=text, span=Span(start, start + len(word)), hint=_hint(error, text, start, word)
    )


def _word_at(text: str, start: int) -> str:
    end = start + 1
    while text[start].isalnum() and end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return text[start:end]


def _unbalanced(text: str) -> QuerySyntaxError | None:
    """A bracket or quote that is never closed, or closed without having been opened."""
    opened: list[tuple[str, int]] = []
    position = 0
    while position < len(text):
        character = text[position]
        if text.startswith("--", position):
            position = _after(text, "\n", position)
        elif text.startswith("/*", position):
            closing = text.find("*/", position + 2)
            if closing < 0:
                return _never_closed("/*", position, text)
            position = closing + 1
        elif character in "'\"`":
            closing = text.find(character, position + 1)
            if closing < 0:
                return _never_closed(character, position, text)
            position = closing
        elif character in "([{":
            opened.append((character, position))
        elif character in ")]}" and (not opened or opened.pop()[0] != _CLOSING[character]):
            return QuerySyntaxError(
                f"`{character}` closes nothing", source=text, span=Span(position, position + 1),
                hint=f"remove it, or add the `{_CLOSING[character]}` it belongs to",
            )  # fmt: skip
        position += 1
    return _never_closed(*opened[-1], text) if opened else None


def _after(text: str, mark: str, position: int) -> int:
    found = text.find(mark, position)
    return len(text) if found < 0 else found


def _never_closed(mark: str, position: int, text: str) -> QuerySyntaxError:
    return QuerySyntaxError(f"this `{mark}` is never closed", source=text, span=Span(position, position + len(mark)))


def _hint(error: UnexpectedInput, text: str, start: int, word: str) -> str | None:
    before = text[:start].rstrip()
    if word.upper() == "BETWEEN":
        return "write `price IN RANGE(1, 5)`; both ends belong to it"
    if (word == "&" and text.startswith("&&", start)) or word == "|":
        return "write AND, OR"
    if word == "!" and "filter" not in before[-8:].lower():
        return "write NOT"
    if word == "." and text[start + 1 : start + 2].isdigit():
        return f"write 0{_number_at(text, start)}"
    if word in (";", ":") and "FILTER" in before.upper().rpartition("(")[2]:
        return "FILTER applies to everything before it; put `(… FILTER …)` in parentheses to go on after it"
    near = suggestion(word, KEYWORDS) if word.isalpha() and word.upper() not in KEYWORDS else None
    return near or _expected(error, word)


def _number_at(text: str, start: int) -> str:
    end = start + 1
    while end < len(text) and text[end].isdigit():
        end += 1
    return text[start:end]


def _expected(error: UnexpectedInput, word: str | None) -> str | None:
    names: set[str] = set(
        getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    )
    shown = []
    for name in sorted(names):
        if name in _PUNCTUATION:
            shown.append(_PUNCTUATION[name])
        elif name.strip("_").upper() in KEYWORDS:
            shown.append(name.strip("_"))
    if word is not None and word.upper() in KEYWORDS and "NAME" in names:
        return f"to use `{word}` as a name, put it in back-quotes: `` `{word}` ``"
    if not shown or len(shown) > 9:
        return None
    return f"expected {' or '.join(shown)} here"
