"""The grammars as people read them: Lark's files as EBNF, alternative by alternative.

    rules("ceql")["postfix"][1]    # postfix ::= postfix count, which the parser calls `counted`

An alternative is known by its alias, or else by its rule. Keywords and marks stand where they are used; what is left of
the terminals (names, numbers, texts) keeps its name. Reads what our files are written in, not all of Lark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lark import Tree

from cerite.language.parsing import parse
from tests.corpus.loader import Case

FOLDER = Path(__file__).parents[2] / "cerite" / "language"
STARTS = ("query", "pattern_only", "condition_only", "size_only", "silence_only", "schema_only")
_RULE = re.compile(r"(\??)([a-z_]+):(.*)")
_TERMINAL = re.compile(r"(_?[A-Z][A-Z_]*)(?:\.\d+)?:(.*)")
_TOKENS = re.compile(r'"(?:\\.|[^"])*"|->\s*\w+|\w+|\S')
_AHEAD = re.compile(r"\(\?[!=](?:\\.|[^()\[\\]|\[(?:\\.|[^\]])*\]|\((?:\\.|[^()\\])*\))*\)|\\s[*+]")
_GAPS = re.compile(r"\( | (?=\)(?: |$|[*?+]))|(?<=[\w)\]\"]) (?=[*?+](?: |$))")
_APART = {"UNIT", "COMPARE"}  # so many words that they would hide the rules they stand in


@dataclass(frozen=True)
class Alternative:
    """One way to write a rule. `inlined`: the parser leaves it out of the tree where it has only one part."""

    rule: str
    alias: str
    text: str
    inlined: bool

    @property
    def key(self) -> str:
        """What the tree calls it."""
        return self.alias or self.rule

    @property
    def in_trees(self) -> bool:
        """Whether a parse tree ever has it under this name."""
        return bool(self.alias) or not self.inlined or "*" in re.sub(r'"[^"]*"', "", self.text)


@cache
def rules(grammar: str) -> dict[str, tuple[Alternative, ...]]:
    """The rules of a grammar, with those that it shares; every rule with its alternatives."""
    known = terminals(grammar)
    return {name: tuple(_alternatives(name, mark == "?", body, known)) for name, mark, body in _written(grammar, _RULE)}


@cache
def terminals(grammar: str) -> dict[str, str]:
    """What stands for each terminal: its words and marks, or else its name."""
    spelled = {name: _spelled(body) for name, _, body in _written(grammar, _TERMINAL)}
    return {name: name if name in _APART or not words else words for name, words in spelled.items()}


@cache
def lexical(grammar: str) -> dict[str, str]:
    """The terminals that keep their names, each with its words or its regular expression."""
    spelled = {name: (_spelled(body), body.strip()) for name, _, body in _written(grammar, _TERMINAL)}
    return {name: unwrapped(words) or body for name, (words, body) in spelled.items() if not words or name in _APART}


def unwrapped(text: str) -> str:
    """Without parentheses around the whole."""
    return re.sub(r"\A\(([^()]*)\)\Z", r"\1", text)


def labels(case: Case) -> frozenset[str]:
    """What the parse tree of a case's query has in it."""
    starts = STARTS if case.language == "ceql" else ("sremo",)
    tree: Tree[object] = parse(case.text, case.language, starts, starts[0])  # type: ignore[assignment]
    return frozenset(str(node.data) for node in tree.iter_subtrees())


def _written(grammar: str, shape: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """Name, mark and body of whatever has this shape; a line that begins with `|` goes on with the last."""
    text = "\n".join((FOLDER / f"{name}.lark").read_text("utf-8") for name in (grammar, "shared"))
    joined = re.sub(r"\n +\|", " |", re.sub(r"\n +(?=[a-z|])(?!\|)", " ", re.sub(r"^//.*$", "", text, flags=re.M)))
    for line in joined.splitlines():
        if (entry := shape.fullmatch(line)) is not None:
            mark, name, body = entry.groups() if shape is _RULE else ("", *entry.groups())
            yield name, mark, body


def _alternatives(rule: str, inlined: bool, body: str, known: dict[str, str]) -> Iterator[Alternative]:
    """The parts of a rule's body between the `|` that are in no parentheses."""
    depth, alias, parts = 0, "", list[str]()
    for token in [*_TOKENS.findall(body), "|"]:
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            yield Alternative(rule, alias, _tidy(parts), inlined)
            alias, parts = "", []
        elif token.startswith("->"):
            alias = token.removeprefix("->").strip()
        else:
            parts.append(known.get(token, token))


def _tidy(parts: list[str]) -> str:
    """Tokens as a line: no blanks inside parentheses and before `* + ?`."""
    return re.sub(
        r"\( | (?=\)(?: |$|[*?+]))|(?<=[\w)\]\"]) (?=[*?+](?: |$))", lambda gap: gap[0].strip(), " ".join(parts)
    )


def _spelled(body: str) -> str:
    """The words that a terminal stands for, if there are few enough to be listed.

    >>> _spelled(r" /(next|nxt)(?!\\w)/i"), _spelled(r" /events?(?!\\w)/i"), _spelled(r" /\\d+/")
    ('(NEXT | NXT)', '(EVENTS | EVENT)', '')
    """
    body = body.strip()
    regular = re.fullmatch(r"/(.*)/(i?)", body)
    if regular is None:
        return f"({body})" if "|" in body else body
    words = list[str]()
    for word in re.sub(r"[()]", "", _AHEAD.sub("", regular[1])).split("|"):
        if (letters := re.fullmatch(r"\[(\w+)\]", word)) is not None:
            words += letters[1]
        elif (plain := re.fullmatch(r"(\w+?)(s\?)?", word)) is not None:
            words += [plain[1] + "s", plain[1]] if plain[2] else [plain[1]]
        elif re.fullmatch(r"\\?[^\w\s\\\[\]?+*]+\w?", word):
            words.append(f'"{word.removeprefix(chr(92))}"')
        else:
            return ""
    if regular[2]:
        words = [word.upper() if word.isascii() else word for word in words]
    return words[0] if len(words) == 1 else f"({' | '.join(words)})"
