"""Bad queries, each with the whole message a user sees (`golden/*.txt`: the query, a line `---`, the message).

`python -m tests.faults.test_bad_queries` writes the messages anew; read the difference before committing it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cerite.core.errors import CeriteError
from cerite.language.ceql import parse_condition, parse_pattern, parse_query, parse_schema, parse_window
from cerite.language.habits import FUNCTIONS, UNITS, WORDS
from cerite.language.sremo import parse_sremo
from cerite.pattern import QuerySpec
from cerite.pattern.check import check
from tests.faults.shown import never_shown

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = parse_schema(
    """CREATE STREAM Stock {
        EVENT BUY { id:int, name:string, price:float, volume:int, settled:bool, at:timestamp },
        EVENT SELL { id:int, name:string, price:float, volume:int } }"""
)
CASES = sorted(GOLDEN.glob("*.txt"))
WHERE_DATA_IS_BOUND = {  # what the text alone does not tell; tests of reading and of sources have these
    " by the query, but ", " by the schema", "the query distinguishes ", ", but no column holds the event type",
    "pass a dictionary that maps stream names to data", ", but the data has only ",
}  # fmt: skip


def message_of(query: str) -> str:
    """What the user sees, or an empty text for a query that is accepted."""
    try:
        if query.startswith("sremo:"):
            text = query.removeprefix("sremo:").strip()
            check(QuerySpec(parse_sremo(text), source=text))
        else:
            parsed = parse_query(query)
            check(parsed, SCHEMA if parsed.schema is None else None)
    except CeriteError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def split(path: Path) -> tuple[str, str]:
    query, _, message = path.read_text("utf-8").partition("\n---\n")
    return query, message.rstrip("\n")


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_message(path: Path) -> None:
    query, message = split(path)
    assert message_of(query) == message


@pytest.mark.parametrize(
    "module",
    [
        "cerite/language/hints.py",
        "cerite/language/ceql_patterns.py",
        "cerite/pattern/absences.py",
        "cerite/pattern/check.py",
        "cerite/pattern/measures.py",
        "cerite/pattern/references.py",
    ],
)
def test_every_refusal_and_all_advice_is_in_some_message(module: str) -> None:
    assert set(never_shown(module, (split(path)[1] for path in CASES))) <= WHERE_DATA_IS_BOUND


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_another_language_is_not_taken_for_a_misspelt_one(word: str) -> None:
    assert f"hint: {WORDS[word]}" in message_of(f"SELECT * FROM Stock WHERE BUY {word} SELL")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nor_is_a_function_of_another_language(name: str) -> None:
    hint = FUNCTIONS[name].format("price")
    assert f"hint: {hint}" in message_of(f"SELECT * FROM Stock WHERE BUY[{name}(price) > 3]")
    assert f"hint: {hint}" in message_of(f"SELECT {name.upper()}(b.price) FROM Stock WHERE BUY AS b")


ADVISED = sorted(
    {
        example
        for advice in (*WORDS.values(), *(each.format("price") for each in FUNCTIONS.values()))
        for example in re.findall("`([^`]+)`", advice)
    }
)


@pytest.mark.parametrize("example", ADVISED)
def test_what_is_advised_can_be_written(example: str) -> None:
    example = example.replace("WHERE … (", "WHERE (").removeprefix("WHERE ")
    if example.startswith("FROM"):
        example = f"SELECT * {example} WHERE A"
    if " WITHIN " in example:
        example = f"SELECT * FROM S WHERE {example}"
    example = re.sub(r"^(?=b\[)", "A AS a ; A+ AS b FILTER ", example)
    for read in (parse_query, parse_pattern, parse_schema, parse_condition):
        try:
            read(example)
        except CeriteError:
            continue
        return
    pytest.fail("nothing reads it")


@pytest.mark.parametrize("word", UNITS)
def test_units_of_other_languages_are_spelt_out(word: str) -> None:
    message = message_of(f"SELECT * FROM Stock WHERE BUY ; SELL WITHIN 2 {word}")
    assert f"hint: {UNITS[word]}" in message
    advised = UNITS[word].split("`")[1]
    assert parse_window(advised if advised[0].isdigit() else f"10 {advised}")


LONG = {
    "ten thousand characters, broken at the end": "SELECT * FROM S WHERE " + " ; ".join(["BUY"] * 1666) + " ;",
    "a hundred thousand characters, broken at the end": "SELECT * FROM S WHERE " + "BUY ; " * 16_666,
    "a thousand parentheses": "SELECT * FROM S WHERE " + "(" * 1000 + "BUY" + ")" * 1000,
    "a thousand plus signs": "SELECT * FROM S WHERE BUY" + "+" * 1000,
    "a thousand NOTs": "SELECT * FROM S WHERE BUY FILTER BUY[" + "NOT " * 1000 + "settled]",
    "a thousand terms": "SELECT * FROM S WHERE BUY FILTER BUY[price > 1" + " + 1" * 1000 + "]",
    "ORs that multiply": "SELECT * FROM S WHERE BUY FILTER " + " AND ".join(["(BUY[id = 1] OR BUY[id = 2])"] * 30),
    "a number of a thousand digits": "SELECT * FROM S WHERE BUY FILTER BUY[id = " + "9" * 1000 + "]",
}


@pytest.mark.parametrize("query", LONG.values(), ids=LONG)
def test_long_and_deep_queries_end_with_a_message(query: str) -> None:
    message = message_of(query)
    assert message.startswith(("QuerySyntaxError", "PatternError"))
    assert len(message) < 600


def test_a_long_query_that_is_right_is_accepted() -> None:
    assert message_of("SELECT * FROM S WHERE " + " ; ".join(["BUY"] * 5_000)) == ""


def test_lines_may_end_as_on_windows() -> None:
    message = message_of("SELECT *\r\nFROM Stock\r\nWHERE BUY AS b FILTER\r\n  b[pirce > 3]\r\n")
    assert message.splitlines()[:3] == [
        "SchemaError: `BUY` has no attribute `pirce` (line 4, column 5)",
        "    b[pirce > 3]",
        "      ^^^^^",
    ]


if __name__ == "__main__":
    for case in CASES:
        text, _ = split(case)
        case.write_text(f"{text}\n---\n{message_of(text)}\n", "utf-8")
