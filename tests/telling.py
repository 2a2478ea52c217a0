"""Cases that tell something: most random queries match nothing on a random stream, so one is looked for that does.

A query and a stream are changed step by step until there is a match: other types for the events, no missing values,
wider windows, fewer clauses, weaker conditions, more events, the opposite of what aggregates are asked. Some cases stay
as they were drawn, so that what matches nothing is tried as well. `Share` counts both while the tests run, and asserts
what it counted. What the engine refuses because of its numbers tells nothing; `refused` says so for all tests, and
`Share` asserts that it stays rare. `often` is how many cases a test draws: some with every change, many more at night.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, settings

from cerite.core.errors import CeriteError
from cerite.pattern import Event, Filter, Having, Pattern, QuerySpec, Size, transform
from cerite.pattern.variables import bound
from cerite.predicate.expression import And, Comparison, Expression, In, InRange, IsNull, Not, Or, aggregates
from cerite.predicate.expression import transform as changed

Rows = list[dict[str, Any]]
LEAST = 1 / 3
LEAST_RUN = 1 / 3  # of what is drawn; what the engine does not run tells nothing
MOST_REFUSED = 1 / 10
REFUSED = (  # of numbers that only another type could compare
    "cannot be compared with exactly",
    "64 bits do not keep exactly",
    "more digits than 64 bits",
    "too many digits",
    "beyond 2^63 beside signed",
    "cannot compare exactly",
    "does not fit 64 bits",  # a sum, which judge and engine refuse, the engine even before it is read
    "are exact",  # on Spark, up to so many places behind the point
)
AT_NIGHT = 20  # times as many cases
BY_DAY = 6  # with every change one in so many, but no fewer than `FEWEST` or one in two
FEWEST = 40
_WEAKER = {"=": "<=", "<": "<=", ">": ">=", "!=": "<="}
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FULL = {"id": 1, "price": 1, "name": "a", "ok": True}
_ENOUGH = "ABBCABCC"  # types that most patterns consist of, for streams that are too short


at_night = False  # tests/conftest.py sets it, before it is read


def often(examples: int, by_day: int | None = None) -> settings:
    """So many random cases, a share of them (or `by_day`) with every change and many more at night."""
    share = max(-(-examples // BY_DAY), min(-(-examples // 2), FEWEST))
    examples = examples * AT_NIGHT if at_night else share if by_day is None else by_day
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]  # queries are large
    filtered = [HealthCheck.filter_too_much]  # `Share` has a floor of its own for what runs
    return settings(max_examples=examples, deadline=None, suppress_health_check=slow + filtered)


def refused(error: CeriteError) -> bool:
    """Whether the engine says that columns of these types are not compared exactly, which is no fault."""
    return any(words in str(error) for words in REFUSED)


def telling(
    query: QuerySpec, rows: Rows, judge: Callable[[QuerySpec, Rows], list[Any] | None]
) -> tuple[QuerySpec, Rows]:
    """The query and the stream, or the first changed ones of which the judge finds a match; None: it cannot say."""
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
    """The stream, with further events where it is short."""
    last = rows[-1]["at"] if rows else 0
    more = enumerate(_ENOUGH[len(rows) :])
    return rows + [{**_FULL, "id": k % 2, "price": k, "type": kind, "at": last + k} for k, kind in more]


def opposed(pattern: Pattern) -> Pattern:
    """The pattern with the opposite of every comparison of an aggregate."""

    def turned(node: Expression) -> Expression:
        if isinstance(node, Comparison) and aggregates(node):
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
    """Every event of the next type, so many times."""
    return [{**row, "type": "ABC"[("ABC".index(row["type"]) + turn) % 3]} for row in rows]


def weakened(pattern: Pattern, *, drop: bool = False) -> Pattern:
    """The pattern with conditions that hold more often, or without those that can go; aggregates stay."""

    def dropped(condition: Expression) -> bool:
        return drop and not aggregates(condition)

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


def weaker(node: Expression) -> Expression:
    """A condition that holds more often, mostly."""
    match node:
        case Comparison(op=op):
            return replace(node, op=_WEAKER.get(op, op))  # type: ignore[arg-type]
        case And(operands=operands):
            return Or(operands)
        case Not(operand=In() | InRange() | IsNull() as inner):
            return Or((inner, node))
    return node


@dataclass
class Share:
    """How many of the cases drawn ran, and how many of those had a match, counted while a test runs."""

    name: str
    least: float = LEAST
    drawn: int = 0
    cases: int = 0
    matched: int = 0
    refused: int = 0

    def note(self, matched: bool) -> None:
        """One more case."""
        self.cases += 1
        self.matched += matched

    def check(self) -> None:
        """Refuse a run that says too little."""
        assert self.cases, self.name
        share, tried = self.matched / self.cases, self.cases + self.refused
        print(
            f"{self.name}: of {self.drawn} cases drawn {self.cases} ran, {self.matched} ({share:.0%}) with a match; "
            f"{self.refused} are refused"
        )
        assert share > self.least, f"{self.name}: only {share:.0%} of {self.cases} cases have a match"
        assert self.refused < MOST_REFUSED * tried, f"{self.name}: {self.refused} of {tried} cases are refused"
        assert self.cases >= LEAST_RUN * self.drawn, f"{self.name}: only {self.cases} of {self.drawn} cases run"
