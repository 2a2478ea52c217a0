"""What to write instead: advice for text that the parser refused, from the words around the place.

People bring habits from SQL, from other pattern languages and from word processors; where one of them shows, the advice
gives CEQL's own spelling. Everywhere else it says what could stand there.
"""

from __future__ import annotations

import re

from cerite.core.errors import suggestion
from cerite.core.names import KEYWORDS
from cerite.language.habits import about_a_word

SHAPES = {
    "query": "a query is SELECT … FROM … WHERE …",
    "sremo": "an event is BUY[price > 3]^o>r; join with e . f, e + f, e & f, !e, e*, #(e, f), @(e, f)",
}
_ORDER = "the order is SELECT … FROM … WHERE … FILTER …, then PARTITION BY, WITHIN, CONSUME BY, LIMIT and SUPPRESS"
_SELECTED = "SELECT takes variables, x[price], and measures: x.price AS low, AVG(y.price), COUNT(y), DURATION()"
_JOIN = "join patterns with `;` (then), `:` (at the very next event), AND or OR; name one with AS"
_CONDITION = "conditions consist of + - * / %, = != < <= > >=, IN, LIKE, IS NULL, AND, OR and NOT"
_QUOTES = "write straight quotes: 'MSFT'"
_COMMENT = "a comment is `-- to the end of the line` or `/* between */`"
_CLAUSES = ("SELECT", "FROM", "WHERE", "FILTER", "PARTITION", "WITHIN", "CONSUME", "LIMIT", "SUPPRESS")
_STRATEGIES = ("STRICT", "NEXT", "LAST", "MAX")
_OPERATORS = (*_STRATEGIES, "PERMUTE", "SKIP_ANY", "SKIP_NEXT", "COMPLEMENT")
_SIGNS = {
    "‘": _QUOTES, "’": _QUOTES, "“": _QUOTES, "”": _QUOTES, "„": _QUOTES, "«": _QUOTES, "»": _QUOTES,
    "#": _COMMENT, "//": _COMMENT, "—": "write `-`, or `--` before a comment", "–": "write `-`", "−": "write `-`",
    "≤": "write `<=`", "≥": "write `>=`", "≠": "write `!=`", "×": "write `*`", "÷": "write `/`",
    "&&": "write AND", "&": "write AND", "||": "write OR", "|": "write OR", "->": "write `A ; B` for A and later B",
}  # fmt: skip
_COMPARISON = re.compile(r"\(([^()]*?(?:[<>=]|\bis\b|\bin\b|\blike\b)[^()]*)\)", re.I)
_PUNCTUATION = {
    "RPAR": "`)`", "LPAR": "`(`", "RSQB": "`]`", "LSQB": "`[`", "RBRACE": "`}`", "BRACE": "`{`", "SEMICOLON": "`;`",
    "COLON": "`:`", "COMMA": "`,`", "NAME": "a name", "INT": "a number", "STRING": "a string",
}  # fmt: skip


def advice(text: str, start: int, word: str, expected: frozenset[str]) -> str | None:
    """What to write instead of the word at `start` (empty if the text ends there), which the parser did not expect."""
    before = text[:start].rstrip()
    if not word:
        last = "leave out the last `;`, or write what comes after it" if before.endswith(";") else None
        return last or expectation(before, expected)
    return (
        _about_a_sign(text, start, word)
        or about_a_word(text, start, word, before)
        or _about_its_place(text, start, word, before, expected)
        or _about_a_keyword(word, before, expected)
        or expectation(before, expected)
    )


def sremo_advice(expected: frozenset[str]) -> str | None:
    """What a SREMO looks like; inside a condition, what could stand at the place."""
    return expectation("", expected) if {"NAME", "STRING"} <= expected else SHAPES["sremo"]


def expectation(before: str, expected: frozenset[str]) -> str | None:
    """`expected … here`, unless too many things could stand there."""
    if re.search(r"\bfilter\Z", before, re.I):
        return "expected a filter here: `x[price > 3]`"
    if "PERMUTE" in expected:
        return "expected a pattern here: an event type, or a pattern in parentheses"
    if {"NAME", "STRING"} <= expected:
        return "expected an attribute, a number or a string here"
    known = [name for name in sorted(expected) if name in _PUNCTUATION or name.strip("_") in KEYWORDS]
    if not known or len(known) > 9:
        return None
    return f"expected {' or '.join(_PUNCTUATION.get(name) or name.strip('_') for name in known)} here"


def _about_a_sign(text: str, start: int, word: str) -> str | None:
    rest, previous = text[start : start + 2], text[start - 1 : start]
    if previous == "=" and word[0] in "<>=":
        return f"write `{word[0]}{'' if word[0] == '=' else '='}`"
    if word[0] == "." and rest[1:].isdigit():
        return None if previous.isdigit() else f"write 0{text[start:].split()[0].rstrip(')]},;')}"
    if word == "." and previous.isdigit():
        return "numbers are written as 1, 1.0 or 1e3"
    if previous.isdigit() and (word[0].isalpha() or word[0] == "_"):
        return "numbers are written as 1000, 1000.5 or 1e3"
    if word == "!":
        return "write NOT"
    return _SIGNS.get(rest) or _SIGNS.get(word[0])


def _about_its_place(text: str, start: int, word: str, before: str, expected: frozenset[str]) -> str | None:
    last = before[len(re.sub(r"\w+\Z", "", before)) :]
    previous = last.upper()
    if not before and "_SELECT" in expected:
        return SHAPES["query"]
    if re.search(r"\bselect\b(?!.*\bfrom\b)", before, re.I | re.S):
        return _in_select(word, before, last)
    if previous == "IN" and word in ("(", "["):
        return "write `IN {1, 2, 5..9}` or `IN RANGE(1, 9)`"
    if previous == "IS" and "_NULL" in expected:
        return "IS goes with NULL and TRUE; compare with `=`"
    if previous == "BY" and word.isidentifier() and "LSQB" in expected:
        return f"write `[{word}]`"
    if word in ("(", "+", "-", "*", "/", "%") and re.search(r"\bpartition\s+by\s*\[[^\]]*\Z", before, re.I):
        return "partitions are by attributes: compute the value as a column of its own first"
    if _in_brackets(before):
        return _in_a_condition(word, before, expected)
    if "PERMUTE" in expected and (word[0] in "'\"" or word.isdigit()):
        compared = f"; where types are numbers, compare them: `_[type = {word}]`" if word.isdigit() else ""
        bare = _quoted(word.strip("'\""))
        return f"an event type that is not a plain word goes in back-quotes: {bare}{compared}"
    if word == "." and last and "SEMICOLON" in expected:
        return f"a name that holds a dot goes in back-quotes: {_quoted(last + '.' + _next_word(text, start + 1))}"
    if word == "(" and previous and "SEMICOLON" in expected:
        if condition := _COMPARISON.match(text, start):
            return f"conditions stand in brackets: {last}[{condition[1].strip()}]"
        return suggestion(previous, _OPERATORS) or f"the operators on patterns are {', '.join(_OPERATORS)}"
    if word == ";" and not text[start + 1 :].strip():
        return "leave out the last `;`"
    if word in (";", ":") and "FILTER" in before.upper().rpartition("(")[2]:
        return "FILTER applies to everything before it; put `(… FILTER …)` in parentheses to go on after it"
    if {"LSQB", "DOT"} <= expected and "SEMICOLON" not in expected:
        return "say whose events are filtered: `x[price > 3]`, or `x.price > 3`"
    if word.isdigit() and re.search(r"\bwithin\s+\S+\s+\w+\Z", before, re.I):
        return "a window is one amount of one unit: 90 minutes"
    return "name a pattern with AS: `BUY AS b`" if word == "=" else None


def _in_brackets(before: str) -> bool:
    return before.count("[") > before.count("]")


def _in_a_condition(word: str, before: str, expected: frozenset[str]) -> str | None:
    if word == "." and (dotted := re.search(r"([^\W\d]\w*)\.(\w+)\Z", before)):
        return f"a name that holds a dot goes in back-quotes: {dotted[1]}.`{dotted[2]}.…`"
    if re.fullmatch(r"[<>=!]+", word) and "_AND" in expected and "COMPARE" not in expected:
        return "compare twice: `1 < price AND price < 5`"
    return _CONDITION if "COMPARE" in expected and word.upper() not in KEYWORDS else None


def _in_select(word: str, before: str, last: str) -> str | None:
    """Advice between SELECT and FROM, after the word `last`."""
    previous = last.upper()
    first = re.search(r"\bselect\s+\w+\Z", before, re.I) is not None
    if previous == "SELECT":
        return "say what to select: `*` for every variable, or names of variables"
    if word == "(":
        return _SELECTED
    if word == "*" and (starred := re.search(r"(\w+)\.\Z", before)):
        return f"write `{starred[1]}`: an event is shown with all of its attributes"
    if word.upper() == "FROM" and (strategy := re.search(r"\bselect\s+(\w+)\s*\*\Z", before, re.I)):
        near = suggestion(strategy[1].upper(), _STRATEGIES)
        return near or f"the strategies are {', '.join(_STRATEGIES)}"
    if first and previous == "DISTINCT":
        return "leave it out: every match is another one; of equal rows, keep one with drop_duplicates() or unique()"
    if first and previous in _STRATEGIES and word.upper() in ("FROM", ","):
        return _back_quotes(last)
    if first and (word == "*" or word.isidentifier()) and word.upper() not in _CLAUSES:
        comma = "" if word == "*" else "put a comma between variables; "
        return suggestion(previous, _STRATEGIES) or f"{comma}the strategies are {', '.join(_STRATEGIES)}"
    return None


def _about_a_keyword(word: str, before: str, expected: frozenset[str]) -> str | None:
    upper, keywords = word.upper(), {name.strip("_") for name in expected} & KEYWORDS
    if upper not in KEYWORDS:
        near = suggestion(word, keywords) if word.isalpha() else None
        if word == "," and before.endswith("]"):
            return "join filters with AND or OR"
        continues = {"SEMICOLON", "COLON"} <= expected or (word == "," and "_FILTER" in expected)
        return near or (_JOIN if continues and not _in_brackets(before) else None)
    if upper == "NOT" and "PERMUTE" in expected:
        return "NOT stands between two patterns: `A ; NOT B ; C`"
    if "PERMUTE" in expected:
        return f"a pattern is missing before {upper}; {_back_quotes(word)}"
    if upper == "NOT" and not _in_brackets(before):
        return "write NOT inside the brackets: `x[NOT price > 3]`"
    if "NAME" in expected:
        return f"a {'value' if 'STRING' in expected else 'name'} is missing before {upper}; {_back_quotes(word)}"
    if upper == "WHERE" and "_FILTER" in expected:
        return "conditions come after FILTER: `FILTER x[price > 3]`"
    return _ORDER if upper in _CLAUSES and re.search(r"\bfrom\b", before, re.I) else None


def _next_word(text: str, start: int) -> str:
    return re.match(r"[\w.]*", text[start:])[0]  # type: ignore[index]


def _back_quotes(word: str) -> str:
    return f"to use `{word}` as a name, put it in back-quotes: {_quoted(word)}"


def _quoted(name: str) -> str:
    return f"`` `{name}` ``"
