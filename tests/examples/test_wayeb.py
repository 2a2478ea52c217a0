"""Wayeb's pattern files: the patterns of the SRT report's benchmark (section 7) mean what their CEQL means."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

import cerite
from cerite.cli.main import app
from cerite.language.ceql import parse_pattern, parse_query
from cerite.language.wayeb import parse_wayeb, parse_wayeb_patterns
from cerite.pattern import QuerySpec
from cerite.pattern.check import check
from cerite.reference.semantics import matches
from tests.real_stocks import STOCKS, needs_expected, needs_stocks, reported


def tick(kind: str, name: str, *more: str) -> str:
    """One stock tick: `BUY`, `SELL` or `BUY|SELL`, of a company, with further predicates."""
    types = [f"IsEventTypePredicate({each})" for each in kind.split("|")]
    one_of = types[0] if len(types) == 1 else f"|({','.join(types)})"
    return f"^({','.join((one_of, f'EQStr(name,{name})', *more))})"


def gaps(*parts: str) -> str:
    """⟲(…), definition 44."""
    return f"#(;({','.join(parts)}))"


def plus(part: str) -> tuple[str, str]:
    """The report's (…)+ under ⟲: once, then any number of times."""
    return part, f"#(*({part}))"


RIMM = tick("BUY", "RIMM", "LT(price,500.0)")
TICKS = ("SELL INTC", "BUY RIMM", "BUY QQQ", "SELL MSFT", "BUY AMAT")
OTHERS = ("SELL MSFT", "BUY ORCL", "SELL ORCL", "BUY CSCO", "SELL AMAT")
Q4 = (
    tick("SELL", "MSFT", "GT(price,20.0)") + '["x"]',
    tick("BUY|SELL", "ORCL", "GT(price,10.0)"),
    tick("BUY|SELL", "CSCO"),
    tick("SELL", "AMAT", "GTE(price,10.0)", 'LTAttr(price,"x")'),
)
PATTERNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "seq3": (
        gaps(tick("SELL", "INTC") + '["x"]', tick("BUY", "RIMM"), tick("BUY", "QQQ", 'GTAttr(price,"x")')),
        "SELL[name = 'INTC'] AS x ; BUY[name = 'RIMM'] ; BUY[name = 'QQQ' AND price > x.price]",
        TICKS[:3],
    ),
    "seq6": (
        gaps(
            tick("SELL", "INTC") + '["x"]', tick("BUY", "RIMM"), tick("BUY", "QQQ", 'GTAttr(price,"x")'),
            tick("SELL", "MSFT") + '["y"]', tick("BUY", "AMAT"), tick("BUY", "QQQ", 'GTAttr(price,"y")'),
        ),
        """SELL[name = 'INTC'] AS x ; BUY[name = 'RIMM'] ; BUY[name = 'QQQ' AND price > x.price]
        ; SELL[name = 'MSFT'] AS y ; BUY[name = 'AMAT'] ; BUY[name = 'QQQ' AND price > y.price]""",
        (*TICKS, "BUY QQQ"),
    ),
    "k3": (
        gaps(tick("SELL", "INTC") + '["x"]', *plus(RIMM), tick("BUY", "QQQ", 'GTAttr(price,"x")')),
        "SELL[name = 'INTC'] AS x ; (BUY[name = 'RIMM' AND price < 500])+ ; BUY[name = 'QQQ' AND price > x.price]",
        TICKS[:3],
    ),
    "kn4": (
        gaps(
            tick("SELL", "INTC") + '["x"]',
            *plus(gaps(RIMM, *plus(tick("BUY", "QQQ")))),
            tick("SELL", "MSFT", 'LTAttr(price,"x")'),
        ),
        """SELL[name = 'INTC'] AS x ; (BUY[name = 'RIMM' AND price < 500] ; (BUY[name = 'QQQ'])+)+
        ; SELL[name = 'MSFT' AND price < x.price]""",
        TICKS[:4],
    ),
    "kn as the benchmark's files write it: the list repeats, without gaps of its own": (
        gaps(
            tick("SELL", "INTC") + '["x"]',
            f"*({','.join((*plus(RIMM), tick('BUY', 'QQQ')))})",
            tick("SELL", "MSFT", 'LTAttr(price,"x")'),
        ),
        """SELL[name = 'INTC'] AS x
        ; (BUY[name = 'RIMM' AND price < 500] : (BUY[name = 'RIMM' AND price < 500])* : BUY[name = 'QQQ']):*
        ; SELL[name = 'MSFT' AND price < x.price]""",
        TICKS[:4],
    ),
    "q1": (
        gaps(
            tick("SELL", "MSFT") + '["x"]', tick("BUY", "ORCL"), tick("BUY", "CSCO"),
            tick("SELL", "AMAT", 'LTAttr(price,"x")'),
        ),
        """SELL[name = 'MSFT'] AS x ; BUY[name = 'ORCL'] ; BUY[name = 'CSCO']
        ; SELL[name = 'AMAT' AND price < x.price]""",
        OTHERS,
    ),
    "q2": (
        gaps(Q4[0], tick("BUY", "ORCL", "GT(price,10.0)"), tick("BUY", "CSCO"), Q4[3]),
        """SELL[name = 'MSFT' AND price > 20] AS x ; BUY[name = 'ORCL' AND price > 10] ; BUY[name = 'CSCO']
        ; SELL[name = 'AMAT' AND price >= 10 AND price < x.price]""",
        OTHERS,
    ),
    "q3": (
        gaps(
            tick("SELL", "MSFT") + '["x"]', tick("BUY|SELL", "ORCL"), tick("BUY|SELL", "CSCO"),
            tick("SELL", "AMAT", 'LTAttr(price,"x")'),
        ),
        """SELL[name = 'MSFT'] AS x ; (BUY[name = 'ORCL'] OR SELL[name = 'ORCL'])
        ; (BUY[name = 'CSCO'] OR SELL[name = 'CSCO']) ; SELL[name = 'AMAT' AND price < x.price]""",
        OTHERS,
    ),
    "q4": (
        gaps(*Q4),
        """SELL[name = 'MSFT' AND price > 20] AS x
        ; (BUY[name = 'ORCL' AND price > 10] OR SELL[name = 'ORCL' AND price > 10])
        ; (BUY[name = 'CSCO'] OR SELL[name = 'CSCO'])
        ; SELL[name = 'AMAT' AND price >= 10 AND price < x.price]""",
        OTHERS,
    ),
    "q5": (
        gaps(
            tick("SELL", "MSFT") + '["x"]', *plus(tick("BUY|SELL", "QQQ", "EQ(volume,4000.0)")),
            tick("SELL", "AMAT", 'LTAttr(price,"x")'),
        ),
        """SELL[name = 'MSFT'] AS x
        ; (BUY[name = 'QQQ' AND volume = 4000] OR SELL[name = 'QQQ' AND volume = 4000])+
        ; SELL[name = 'AMAT' AND price < x.price]""",
        ("SELL MSFT", "BUY QQQ", "SELL QQQ", "SELL AMAT"),
    ),
}  # fmt: skip


def stream(seed: int, ticks: tuple[str, ...], length: int = 9) -> list[dict[str, Any]]:
    """A short stream that drifts through the ticks in order, so that patterns have matches."""
    random = Random(seed)
    rows, at = [], 0
    for place in range(length):
        drift = place * len(ticks) // length + random.choice((-1, 0, 0, 0, 1))
        kind, name = ticks[min(max(drift, 0), len(ticks) - 1)].split()
        at += random.choice((0, 1, 1, 2))
        price, volume = random.choice((9.0, 11.0, 21.0, 30.0, 600.0)), random.choice((100, 4000, 4000))
        rows.append({"type": kind, "name": name, "price": price, "volume": volume, "at": at})
    return rows


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize(
    ("settings", "clauses"),
    [
        ("{window:6}{windowType:time}", "WITHIN 6 milliseconds"),
        ("{order:2}{window:5}", "WITHIN 5 EVENTS"),
        ("{partitionBy:volume}{window:9}{windowType:count}", "PARTITION BY [volume] WITHIN 9 EVENTS"),
        ("", ""),
    ],
)
def test_a_pattern_of_the_benchmark_means_what_its_ceql_means(name: str, settings: str, clauses: str) -> None:
    written, ceql, ticks = PATTERNS[name]
    one, two = parse_wayeb(written + settings), parse_query(f"SELECT * FROM S WHERE {ceql} {clauses}")
    check(one)
    result = 0
    for seed in range(25):
        rows = stream(seed, ticks)
        expected = matches(two, rows, time="at")
        assert matches(one, rows, time="at") == expected
        result += len(expected)
    assert result or clauses


REPORTED = {
    "wayeb_k1_500.matches": (PATTERNS["k3"][0], 500),
    "wayeb_other1_1000.matches": (PATTERNS["q1"][0], 1000),
    "wayeb_other5_1000.matches": (
        gaps(
            tick("SELL", "MSFT", "GT(price,26.0)") + '["x"]', tick("BUY|SELL", "ORCL", "GT(price,11.14)"),
            tick("BUY|SELL", "CSCO"), tick("SELL", "AMAT", "GTE(price,18.92)", 'LTAttr(price,"x")'),
        ),
        1000,
    ),
}  # fmt: skip


@needs_stocks
@needs_expected
@pytest.mark.parametrize("name", REPORTED)
def test_match_by_match_as_wayeb_reports(name: str) -> None:
    """Wayeb's engine leaves out what is exactly as long as the window, so ours is one millisecond shorter."""
    written, window = REPORTED[name]
    query = cerite.query(parse_wayeb(f"{written}{{window:{window - 1}}}{{windowType:time}}"))
    matches = query.run(STOCKS, time="stock_time", semantics="complex-events")
    assert sorted(match.positions for match in matches) == sorted(reported(name))


SPELLINGS = {
    ";(TruePredicate,*(EQ(v,1.0)),BT(v,1.0,2.0))": "_ : (_[v = 1.0]):* : _[v >= 1.0 AND v < 2.0]",
    "*(EQ(v,1.0),EQ(v,2))": "(_[v = 1.0] : _[v = 2]):*",
    "#(*(EQ(v,-1.5)))": "(_[v = -1.5])*",
    "#(EQ(v,.5),EQ(v,5.))": "_[v = 0.5] ; _[v = 5.0]",
    "#(+(IsEventTypePredicate(A),EQStr(n,b)))": "A OR _[n = 'b']",
    "|(IsEventTypePredicate(A),IsEventTypePredicate(B))": "A OR B",
    "|(;(IsEventTypePredicate(A),TruePredicate),EQStr(EventType,B))": "A : _ OR B",
    "^(|(IsEventTypePredicate(A),IsEventTypePredicate(B)),-IsEventTypePredicate(A))": "B",
    "^(IsEventTypePredicate(A),IsEventTypePredicate(B))": "NOTHING",
    "@(;(IsEventTypePredicate(A),IsEventTypePredicate(B)))": "SKIP_NEXT(A, B)",
    "@(*(IsEventTypePredicate(A)))": "SKIP_NEXT(A:*)",
    ";(IsEventTypePredicate(A),!(IsEventTypePredicate(B)),IsEventTypePredicate(C))": "A : COMPLEMENT(B) : C",
    "!(IsEventTypePredicate(A),IsEventTypePredicate(B))": "COMPLEMENT(A : B)",
    '-(EQStr(n,\'a b\'))["x"]': "_[NOT ((n = 'a b') IS TRUE)] INTO x",
    '#(;(TruePredicate["x"],^(LTEAttr(v,"x"),EQAttrStr(`stock name`,"x"))))':
        "_ INTO x ; _[v <= x.v AND `stock name` = x.`stock name`]",
    "#(;(#(*(EQ(v,1.0))),EQ(v,2.0)))": "(_[v = 1.0])* ; _[v = 2.0]",
    ";(#(;(#(*(EQ(v,1.0))),EQ(v,2.0))),EQ(v,3.0))": "SKIP_ANY((_[v = 1.0])*, _[v = 2.0]) : _[v = 3.0]",
    "+(EpsilonPredicate,TruePredicate())": "EMPTY OR _",
    "EQ(v,1.0) /* one */\n  -- and a line": "_[v = 1.0]",
}  # fmt: skip


@pytest.mark.parametrize("text", SPELLINGS)
def test_spellings(text: str) -> None:
    assert parse_wayeb(text).where == parse_pattern(SPELLINGS[text])


def test_a_file_of_several_patterns_asks_for_the_matches_of_any() -> None:
    text = "#(;(EQ(v,1.0),EQ(v,2.0))){window:3} & EQ(v,3.0){window:3}"
    assert [str(each.where) for each in parse_wayeb_patterns(text)] == ["_[v = 1.0] ; _[v = 2.0]", "_[v = 3.0]"]
    assert str(parse_wayeb(text)).endswith("WHERE _[v = 1.0] ; _[v = 2.0] OR _[v = 3.0]\nWITHIN 3 EVENTS")
    apart = parse_wayeb("#(;(EQ(v,1.0),EQ(v,2.0))){window:3} & EQ(v,3.0)")
    assert str(apart).endswith("WHERE (_[v = 1.0] ; _[v = 2.0] WITHIN 3 EVENTS) OR _[v = 3.0]")


def test_both_ends_belong_to_the_window() -> None:
    rows = [{"type": kind, "at": at} for kind, at in (("A", 0), ("X", 3), ("B", 5))]
    ab = "#(;(IsEventTypePredicate(A),IsEventTypePredicate(B)))"
    windows = (
        "{window:5}{windowType:time}",
        "{window:4}{windowType:time}",
        "{window:3}",
        "{window:2}{windowType:count}",
    )
    assert [len(matches(parse_wayeb(ab + window), rows, time="at")) for window in windows] == [1, 0, 1, 0]


def test_the_command_line_reads_sre_files(tmp_path: Path) -> None:
    pattern, events = tmp_path / "ab.sre", tmp_path / "events.csv"
    pattern.write_text("#(;(IsEventTypePredicate(A),IsEventTypePredicate(B))){window:2}{windowType:time}\n")
    events.write_text("type,at\nA,0\nX,1\nB,2\nB,3\n")
    run = CliRunner().invoke
    assert run(app, ["run", str(pattern), str(events), "--time", "at", "--count"]).stdout.strip() == "1"
    assert "ok" in run(app, ["check", str(pattern)]).output
    assert "WITHIN 2 milliseconds" in run(app, ["explain", str(pattern)]).output
    assert "event A, stored in x" in run(app, ["explain", "-l", "wayeb", 'IsEventTypePredicate(A)["x"]']).output


def test_python_runs_what_it_parses() -> None:
    query = cerite.query(parse_wayeb("#(;(IsEventTypePredicate(A),GT(v,1.0)))"))
    assert isinstance(query.query, QuerySpec)
    matches = query.run([{"type": "A", "v": 0}, {"type": "B", "v": 1}, {"type": "B", "v": 2}])
    assert [str(match) for match in matches] == ["[0,2] A=0, _=2"]
