"""From text to a parse tree, and from the parser's errors to ours.

Both languages share the grammar of conditions (`shared.lark`). A tree deeper than `MAX_DEPTH` is refused before
anything recursive looks at it, so no query can exhaust the stack.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeVar

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from cerite.core.errors import QuerySyntaxError, Span
from cerite.language.hints import SHAPES, advice, expectation, sremo_advice
from cerite.pattern.nodes import Pattern
from cerite.predicate.expression import Expression

T = TypeVar("T", Expression, Pattern)
MAX_DEPTH = 200
MAX_LENGTH = 1_000_000
Node = Tree[Token]
_OPENING = {")": "(", "]": "[", "}": "{"}
_CLOSING = {"(": ")", "[": "]", "{": "}", "/*": "*/"}
_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


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
    if not _COMMENTS.sub("", text).strip():
        raise QuerySyntaxError("the query is empty", hint=SHAPES.get(start))
    try:
        tree = _parser(grammar, starts).parse(text, start=start)
    except UnexpectedInput as error:
        raise _translated(error, text, grammar) from None
    _check_depth(tree, text)
    return tree


def span_of(node: Node | Token) -> Span | None:
    """Where the node stands in the text."""
    if isinstance(node, Token):
        return Span(node.start_pos or 0, node.end_pos or 0)
    meta = node.meta
    return None if meta.empty else Span(meta.start_pos, meta.end_pos)


def placed(part: T, node: Node) -> T:
    """The part that a node stands for, with the node's place unless it already has one."""
    if part.span is None:
        object.__setattr__(part, "span", span_of(node))
    return part


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


def _translated(error: UnexpectedInput, text: str, grammar: str) -> QuerySyntaxError:
    unbalanced = _unbalanced(text)
    if unbalanced is not None:
        return unbalanced
    expected = frozenset(
        getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    )
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        start, word, message = len(text.rstrip()), "", "the query ends too early"
    else:
        start, word = _unexpected(error, text)
        message = f"unexpected `{word if word.isprintable() else ascii(word)[1:-1]}`"
    if grammar == "ceql":
        hint = advice(text, start, word, expected)
    else:  # `cerite.language.wayeb` says more
        hint = sremo_advice(expected) if grammar == "sremo" else expectation("", expected)
    return QuerySyntaxError(message, source=text, span=Span(start, start + (len(word) or 1)), hint=hint)


def _unexpected(error: UnexpectedInput, text: str) -> tuple[int, str]:
    if isinstance(error, UnexpectedToken):
        return error.token.start_pos or 0, str(error.token)
    assert isinstance(error, UnexpectedCharacters)
    start = error.pos_in_stream or 0
    return start, _word_at(text, start)


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
        elif character in ")]}":
            if _OPENING[character] not in (mark for mark, _ in opened):
                return QuerySyntaxError(
                    f"`{character}` closes nothing", source=text, span=Span(position, position + 1),
                    hint=f"remove it, or add the `{_OPENING[character]}` it belongs to",
                )  # fmt: skip
            if opened[-1][0] != _OPENING[character]:
                return _never_closed(*opened[-1], text)
            opened.pop()
        position += 1
    return _never_closed(*opened[-1], text) if opened else None


def _after(text: str, mark: str, position: int) -> int:
    end = text.find(mark, position)
    return len(text) if end < 0 else end


def _never_closed(mark: str, position: int, text: str) -> QuerySyntaxError:
    shown, hint = f"`{mark}`", f"add the `{_CLOSING.get(mark, mark)}` that closes it"
    if mark == "`":
        shown = "back-quote"
        hint = "a name in back-quotes needs one at both ends; one inside is doubled"
    elif mark in "'\"":
        hint += f"; a quote inside a text is doubled: {mark}a{mark}{mark}b{mark}"
    return QuerySyntaxError(
        f"this {shown} is never closed", source=text, span=Span(position, position + len(mark)), hint=hint
    )
