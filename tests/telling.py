"""Informative random cases: most random queries match nothing on a random stream, so both are changed until they do.

The changes come step by step: other types for the events, no missing values, wider windows, fewer clauses, weaker
conditions, more events, the opposite of conditions on aggregates. Some cases stay as they were drawn, so that cases
without a match are tried as well. `Share` counts both kinds while the tests run, and asserts that there are enough
matches. A case that the engine refuses because of its numbers shows nothing: `refused` recognises these for all tests,
and `Share` asserts that they stay rare. `often` says how many cases a test draws: some in a CI run, many more nightly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, settings

from cerite.core.errors import CeriteError
from cerite.pattern import Event, Filter, Having, Pattern, QuerySpec, Size, transform
from cerite.pattern.variables import bound
from cerite.predicate import expression as ex
from cerite.predicate.expression import transform as changed

Rows = list[dict[str, Any]]
LEAST = 1 / 3
LEAST_RUN = 1 / 3  # of the cases drawn; those that the engine does not run show nothing
MOST_REFUSED = 1 / 10
REFUSED = (  # for numbers that only another type could compare
    "cannot be compared with exactly",
    "64 bits cannot keep exactly",
    "more digits than 64 bits",
    "too many digits",
    "beyond 2^63 among signed",
    "cannot compare exactly",
    "does not fit 64 bits",  # a sum, which judge and engine refuse, the engine even before it is read
    "are exact",  # on Spark, up to a number of decimal places
)
# Health checks that do not apply: queries and streams are drawn in many parts, and tables are large.
LARGE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
AT_NIGHT = 20  # times as many cases in a nightly run
BY_DAY = 6  # in a CI run one in this many, but no fewer than `FEWEST` or one in two
FEWEST = 40
_WEAKER = {"=": "<=", "<": "<=", ">": ">=", "!=": "<="}
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FULL = {"id": 1, "price": 1, "name": "a", "ok": True}
_ENOUGH = "ABBCABCC"  # types that most patterns consist of, for streams that are too short


at_night = False  # tests/conftest.py sets it, before it is read


def often(examples: int, by_day: int | None = None) -> settings:
    """This many random cases: in a CI run a share of them (or `by_day`), in a nightly run many more.

    A test that drops most of what it draws fails: by Hypothesis's health check, or where `Share` counts, by its floor.
    """
    share = max(-(-examples // BY_DAY), min(-(-examples // 2), FEWEST))
    examples = examples * AT_NIGHT if at_night else share if by_day is None else by_day
    return settings(max_examples=examples, deadline=None, suppress_health_check=LARGE)


def refused(error: CeriteError) -> bool:
    """Whether the engine says that columns of these types cannot be compared exactly, which is not a failure."""
    return any(words in str(error) for words in REFUSED)


def telling(
    query: QuerySpec, rows: Rows, judge: Callable[[QuerySpec, Rows], list[Any] | None]
) -> tuple[QuerySpec, Rows]:
    """The query and the stream, or the first changed ones with a match; where the judge gives None, it cannot tell."""
    for each in candidates(query, rows):
        if judge(*each):
            return each
    return query, rows


def candidates(query: QuerySpec, rows: Rows) -> Iterator[tuple[QuerySpec, Rows]]:
    """Ever easier cases."""
    full = [{**_FULL, **{name: value for name, value in row.items() if value is not None}} for row in rows]
    yield query, rows
    yield from ((query, rotated(rows, turn)) for turn in (1, 2))
    yield from ((query, rotated(full, turn)) for turn in (0, 1, 2))
    weaker = replace(query, where=weakened(query.where), source=None)
    yield from ((weaker, rotated(full, turn)) for turn in (0, 1, 2))
    wider = replace(weaker, within=Size.events(7)) if query.within is not None else weaker
    yield from ((wider, rotated(full, turn)) for turn in (0, 1, 2))
    whole = replace(wider, partition=(), strategy=None)
    yield from ((whole, rotated(full, turn)) for turn in (0, 1, 2))
    bare = replace(whole, where=weakened(query.where, drop=True), items=None)
    yield from ((bare, rotated(full, turn)) for turn in (0, 1, 2))
    longer = lengthened(full)
    if longer != full:
        yield from ((bare, rotated(longer, turn)) for turn in (0, 1, 2))
    turned = replace(bare, where=opposed(bare.where))
    if turned != bare:
        yield from ((turned, rotated(longer, turn)) for turn in (0, 1, 2))


def lengthened(rows: Rows) -> Rows:
    """The stream, with further events if it is short."""
    last = rows[-1]["at"] if rows else 0
    more = enumerate(_ENOUGH[len(rows) :])
    return rows + [{**_FULL, "id": k % 2, "price": k, "type": kind, "at": last + k} for k, kind in more]


def opposed(pattern: Pattern) -> Pattern:
    """The pattern with the opposite of every comparison of an aggregate."""

    def turned(node: ex.Expression) -> ex.Expression:
        if isinstance(node, ex.Comparison) and ex.aggregates(node):
            return replace(node, op=_OPPOSITE[node.op])  # type: ignore[arg-type]
        return node

    def change(node: Pattern) -> Pattern:
        if isinstance(node, Event) and node.condition is not None:
            return replace(node, condition=changed(node.condition, turned))
        if isinstance(node, Filter):
            on = tuple(replace(each, condition=changed(each.condition, turned)) for each in node.conditions)
            return replace(node, conditions=on)
        if isinstance(node, Having):
            return replace(node, conditions=tuple(changed(each, turned) for each in node.conditions))
        return node

    return transform(pattern, change)


def rotated(rows: Rows, turn: int) -> Rows:
    """The stream with the type of every event replaced by the next one, `turn` times."""
    return [{**row, "type": "ABC"[("ABC".index(row["type"]) + turn) % 3]} for row in rows]


def weakened(pattern: Pattern, *, drop: bool = False) -> Pattern:
    """The pattern with conditions that hold more often, or without those that can go; aggregates stay."""

    def dropped(condition: ex.Expression) -> bool:
        return drop and not ex.aggregates(condition)

    def change(node: Pattern) -> Pattern:
        if isinstance(node, Event) and node.condition is not None:
            return replace(node, condition=None if dropped(node.condition) else changed(node.condition, weaker))
        if isinstance(node, Filter):
            conditions = (each for each in node.conditions if not dropped(each.condition))
            on = tuple(replace(each, condition=changed(each.condition, weaker)) for each in conditions)
            known = tuple(each for each in on if each.variable in bound(node.operand))
            return Filter(node.operand, known) if known or not drop else node.operand
        if isinstance(node, Having):
            return replace(node, conditions=tuple(changed(each, weaker) for each in node.conditions))
        return node

    return transform(pattern, change)


def weaker(node: ex.Expression) -> ex.Expression:
    """A condition that holds more often, mostly."""
    match node:
        case ex.Comparison(op=op):
            return replace(node, op=_WEAKER.get(op, op))  # type: ignore[arg-type]
        case ex.And(operands=operands):
            return ex.Or(operands)
        case ex.Not(operand=ex.In() | ex.InRange() | ex.IsNull() as inner):
            return ex.Or((inner, node))
    return node


@dataclass
class Share:
    """Counts, while a test runs, how many of the cases drawn ran, and how many of those had a match."""

    name: str
    least: float = LEAST
    drawn: int = 0
    cases: int = 0
    matched: int = 0
    refused: int = 0

    def note(self, matched: bool) -> None:
        """Count one more case."""
        self.cases += 1
        self.matched += matched

    def check(self) -> None:
        """Fail a run with too few cases or matches, or with too many refusals."""
        assert self.cases, self.name
        share, tried = self.matched / self.cases, self.cases + self.refused
        print(
            f"{self.name}: of {self.drawn} cases drawn {self.cases} ran, {self.matched} ({share:.0%}) with a match; "
            f"{self.refused} are refused"
        )
        assert share > self.least, f"{self.name}: only {share:.0%} of {self.cases} cases have a match"
        assert self.refused < MOST_REFUSED * tried, f"{self.name}: {self.refused} of {tried} cases are refused"
        assert self.cases >= LEAST_RUN * self.drawn, f"{self.name}: only {self.cases} of {self.drawn} cases run"
