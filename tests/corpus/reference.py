"""The references of CEQL and SREMO, docs/ceql.md and docs/sremo.md: words from pages/, grammar and corpus put in.

    python -m tests.corpus.reference            # what the pages lack, if anything
    python -m tests.corpus.reference --write    # write them

A page of pages/ has `<!-- syntax: … -->` where rules of the grammar belong (a rule, an alias, `rule.alias`, or
`rule.plain` for what has no alias) and `<!-- case: … -->` where a case of the corpus does. `missing` says what a page
leaves out: an alternative of the grammar that it does not show, a word of the lexer, a construct without an example in
its own section. `<!-- syntax, no example: … -->` is for what no query has in it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.corpus.grammar import Alternative, labels, lexical, rules, unwrapped
from tests.corpus.loader import Case, load

WORDS = Path(__file__).parent / "pages"
DOCS = Path(__file__).parents[2] / "docs"
LANGUAGES = ("ceql", "sremo")
_MARK = re.compile(r"^<!-- (syntax|syntax, no example|case): (.+?) -->$", re.M)
_WIDE = 100  # a stream with longer lines is shown with one line an event
_HEAD = "<!-- Written by `python -m tests.corpus.reference --write` from tests/corpus/pages, grammar and corpus. -->"


def page(language: str) -> str:
    """The page as it is published."""
    text = (WORDS / f"{language}.md").read_text("utf-8")
    title, rest = text.split("\n", 1)
    return f"{title}\n\n{_HEAD}\n{_MARK.sub(lambda mark: _put_in(language, mark), rest)}"


def missing(language: str) -> Iterator[str]:
    """What the page should have and has not."""
    text = (WORDS / f"{language}.md").read_text("utf-8")
    shown = {each for mark in _MARK.finditer(text) if mark[1] != "case" for each in _chosen(language, mark[2])}
    for each in (each for rule in rules(language).values() for each in rule):
        if each not in shown:
            yield f"no section shows `{each.rule} ::= {each.text}`"
    for name in sorted(set(lexical(language)) - {each for each in shown if isinstance(each, str)}):
        yield f"no section shows the terminal {name}"
    for section in re.split(r"^#+ ", text, flags=re.M)[1:]:
        yield from _without_example(language, section)


def _without_example(language: str, section: str) -> Iterator[str]:
    """The constructs of a section that none of its examples has."""
    cases = [_case(language, mark[2]) for mark in _MARK.finditer(section) if mark[1] == "case"]
    seen = frozenset[str]().union(*map(labels, cases))
    for mark in _MARK.finditer(section):
        for each in _chosen(language, mark[2]) if mark[1] == "syntax" else ():
            if isinstance(each, Alternative) and each.in_trees and each.key not in seen:
                yield f"{section.splitlines()[0]!r} has no example of `{each.rule} ::= {each.text}`"


def _put_in(language: str, mark: re.Match[str]) -> str:
    if mark[1] == "case":
        return _example(_case(language, mark[2]))
    return "\n".join(["```ebnf", *_syntax(language, _chosen(language, mark[2])), "```"])


def _chosen(language: str, names: str) -> list[Alternative | str]:
    """What a mark names: alternatives of rules, or terminals."""
    chosen = list[Alternative | str]()
    for name in names.split():
        rule, _, alias = name.partition(".")
        if name in lexical(language):
            named: list[Alternative | str] = [name]
        elif rule in rules(language):
            named = [each for each in rules(language)[rule] if alias in ("", each.alias or "plain")]
        else:
            named = [each for rule in rules(language).values() for each in rule if each.alias == name]
        if not named:
            raise ValueError(f"the grammar of {language} has no {name!r}")
        chosen += named
    return chosen


def _syntax(language: str, chosen: list[Alternative | str]) -> Iterator[str]:
    """EBNF, rule by rule: alternatives with a name of their own one a line, others side by side."""
    heads = [each if isinstance(each, str) else each.rule for each in chosen]
    width = max(map(len, heads))
    for head in dict.fromkeys(heads):
        mine = [each for each in chosen if not isinstance(each, str) and each.rule == head]
        plain = " | ".join(unwrapped(each.text) for each in mine if not each.alias)
        lines = [*([plain] if plain else []), *(each.text for each in mine if each.alias)] or [lexical(language)[head]]
        yield from (
            f"{head if not row else '':{width}} {'|' if row else '::=':>3} {line}" for row, line in enumerate(lines)
        )


def examples(language: str) -> list[Case]:
    """The cases that a page shows."""
    text = (WORDS / f"{language}.md").read_text("utf-8")
    return [_case(language, mark[2]) for mark in _MARK.finditer(text) if mark[1] == "case"]


def _example(case: Case) -> str:
    """A case: its query, its stream, its matches."""
    name = case.name.removeprefix(f"{case.language} ")
    notes = [case.source] if case.source else []
    notes += [f'`semantics="{case.semantics}"`'] if case.semantics != "valuations" else []
    notes += [f'`time="{case.time}"`'] if case.time else []
    notes += [f"{count} of those that end at row {end}" for end, count in (case.counts or {}).items()]
    note = f" ({', '.join(notes)})" if notes else ""
    why = f" {case.why[0].upper()}{case.why[1:]}." if case.why else ""
    text = "\n".join(line.removeprefix("  ") for line in case.text.splitlines())
    matches = "\n".join(case.expected) or "no match"
    return f"*{name[0].upper()}{name[1:]}*{note}.{why}\n\n```\n{text}\n\n{_stream(case)}\n\n{matches}\n```"


def _stream(case: Case) -> str:
    """The events side by side, or one a line where that would be too wide."""
    lines = [["row", *map(str, range(len(case.rows)))]]
    lines += [[name, *(_cell(row.get(name, "")) for row in case.rows)] for name in case.columns]
    if sum(max(map(len, column)) + 2 for column in zip(*lines, strict=True)) > _WIDE:
        lines = [list(column) for column in zip(*lines, strict=True)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _cell(value: object) -> str:
    """As the corpus writes it."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    text = getattr(value, "isoformat", lambda: str(value))()
    return str(text).removesuffix("+00:00")


@cache
def _cases() -> dict[str, Case]:
    return {case.name: case for case in load()}


def _case(language: str, name: str) -> Case:
    case = _cases().get(name)
    if case is None or case.language != language:
        raise ValueError(f"the corpus has no case of {language} called {name!r}")
    return case


def main() -> int:
    """Write the pages, or say what they lack."""
    for language in LANGUAGES:
        for line in missing(language):
            print(f"{language}: {line}")
        if "--write" in sys.argv[1:]:
            (DOCS / f"{language}.md").write_text(page(language), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
