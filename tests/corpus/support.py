"""Which route runs which case of the corpus, and the table of it in docs/support.md.

    python -m tests.corpus.support            # print the table
    python -m tests.corpus.support --write    # put it into docs/support.md

The judge runs a case unless the case is `open`; the local engine runs what can be planned; Spark runs what the local
engine runs, less what `NOT_ON_SPARK` names. The tests of the three routes ask here, so the table says what they run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cerite.core.errors import PatternError
from cerite.engine.plan import plan
from cerite.pattern import (
    Complement,
    Concat,
    Consume,
    Empty,
    Event,
    Filter,
    Intersection,
    Iteration,
    Named,
    Nothing,
    Pattern,
    Permute,
    Project,
    QuerySpec,
    Select,
    Sequence,
    SkipAny,
    SkipNext,
    Strategy,
    Union,
    Window,
    walk,
)
from cerite.pattern.absences import has_absence
from cerite.pattern.nodes import Size, conditions_of
from cerite.pattern.variables import nullable
from cerite.predicate.expression import aggregates, variables
from tests.corpus.loader import Case, load

PAGE = Path(__file__).parents[2] / "docs" / "support.md"
BEGIN, END = "<!-- support: written by `python -m tests.corpus.support --write` -->\n", "<!-- end of support -->\n"
ROUTES = ("judge", "local engine", "Spark")
NOT_ON_SPARK: dict[str, str] = {}  # case: why; beyond what the local engine refuses


@dataclass(frozen=True)
class Known:
    """A case and its query."""

    case: Case
    query: QuerySpec

    @property
    def nodes(self) -> tuple[Pattern, ...]:
        return tuple(walk(self.query.where))

    @property
    def windows(self) -> tuple[Size, ...]:
        inside = (node.size for node in self.nodes if isinstance(node, Window))
        return (*inside, *((self.query.within,) if self.query.within else ()))

    def refusal(self, route: str) -> str:
        """Why a route does not run the case; empty if it does."""
        if route == "judge":
            return self.case.open
        try:
            plan(self.query, self.case.semantics)
        except PatternError as error:
            return error.message
        return NOT_ON_SPARK.get(self.case.name, "") if route == "Spark" else ""


def known(case: Case) -> Known:
    """A case with its query; a SREMO is a query of that pattern."""
    parsed = case.parsed()
    return Known(case, parsed if isinstance(parsed, QuerySpec) else QuerySpec(parsed))


def _has(*kinds: type[Pattern]) -> Callable[[Known], bool]:
    return lambda each: any(isinstance(node, kinds) for node in each.nodes)


def _reads(pattern: Pattern) -> bool:
    """Whether a condition in the pattern reads another event."""
    return any(map(variables, conditions_of(pattern)))


def _aggregates(each: Known) -> bool:
    """Whether a condition asks for one value of many events."""
    return any(map(aggregates, conditions_of(each.query.where)))


def _negated(pattern: Pattern) -> Iterator[Pattern]:
    for node in walk(pattern):
        if isinstance(node, Sequence):
            yield from node.negated


def _meeting(each: Known) -> bool:
    """Whether negated patterns that compare events are followed at the same time."""
    nested = any(map(_reads, (inside for outside in _negated(each.query.where) for inside in _negated(outside))))
    return nested or any(isinstance(node, Sequence) and _meets(node) for node in each.nodes)


def _meets(node: Sequence) -> bool:
    sides = zip(node.absent, node.parts[1:], node.absent[1:], strict=False)
    return any(nullable(part) and any(map(_reads, before)) and any(map(_reads, after)) for before, part, after in sides)


def _selects(strategy: Strategy) -> Callable[[Known], bool]:
    return lambda each: each.query.strategy is strategy


# From general to special: a case that a route does not run is held against the last of its features alone.
FEATURES: dict[str, Callable[[Known], bool]] = {
    "event types, conditions on one event": _has(Event),
    "naming `AS`, `FILTER x[…]`": _has(Named, Filter),
    "sequence `;`, contiguous sequence `:`": _has(Sequence, Concat),
    "iteration `+ * ? {n,m}`, with gaps and contiguous": _has(Iteration),
    "`OR`, `AND`, `PERMUTE`": _has(Union, Intersection, Permute),
    "conditions across events, `z[price > x.price]`": lambda each: _reads(each.query.where),
    "aggregates, `z[price > MAX(y.price)]`, `FILTER COUNT(y) >= 5`": _aggregates,
    "negation in a gap, `φ ; NOT ν ; ψ`": lambda each: any(
        isinstance(node, Sequence) and any(node.absent) for node in each.nodes
    ),
    "projection, `SELECT x, y[price]`, `PROJECT{x}(φ)`": lambda each: (
        each.query.items is not None or _has(Project)(each)
    ),
    "measures, `SELECT x.price AS low, AVG(y.price) AS mean`": lambda each: bool(each.query.measures),
    "windows of time": lambda each: any(size.is_time for size in each.windows),
    "windows of events": lambda each: any(size.unit == "events" for size in each.windows),
    "windows of an attribute": lambda each: any(size.attribute is not None for size in each.windows),
    "windows on a part of a pattern": _has(Window),
    **{f"`SELECT {strategy.value}`": _selects(strategy) for strategy in Strategy},
    "a strategy on a part, `NEXT(φ)`": _has(Select),
    "a strategy around another, `NEXT(LAST(φ))`": lambda each: any(
        isinstance(node, Select) and any(isinstance(inner, Select) for inner in walk(node.operand))
        for node in each.nodes
    ),
    "`PARTITION BY`": lambda each: bool(each.query.partition),
    "`CONSUME BY`": lambda each: each.query.consume is not Consume.NONE,
    "`LIMIT`": lambda each: each.query.limit is not None,
    "`SUPPRESS`": lambda each: each.query.suppress is not None,
    "declared streams, `CREATE STREAM`": lambda each: each.query.schema is not None,
    "matches as plain sets of positions (`complex-events`)": lambda each: each.case.semantics == "complex-events",
    "negation of what compares its own events": lambda each: any(map(_reads, _negated(each.query.where))),
    "absence, `φ ; NOT ν WITHIN ε`, `NOT ν ; φ WITHIN ε`": lambda each: has_absence(each.query.where),
    "negation of what compares its own events inside another such, or twice around a part that may be empty": _meeting,
    "SREMO: registers, events passed over, ε, ∅": lambda each: (
        _has(Empty, Nothing)(each)
        or any(isinstance(node, Event) and not (node.output and node.register is None) for node in each.nodes)
    ),
    "SREMO: complement `!`, skip-till-any `⟲`, skip-till-next `@`": _has(Complement, SkipAny, SkipNext),
}


def table(cases: list[Known]) -> str:
    """The table, and the cases that a route does not run."""
    refused = {(route, each.case.name): reason for route in ROUTES for each in cases if (reason := each.refusal(route))}
    most_special = {each.case.name: [name for name, holds in FEATURES.items() if holds(each)][-1] for each in cases}
    lines = [f"| | {' | '.join(ROUTES)} |", "| --- " * (1 + len(ROUTES)) + "|"]
    for name, holds in FEATURES.items():
        names = [each.case.name for each in cases if holds(each)]
        to_blame = [each for each in names if most_special[each] == name]
        cells = [_cell(sum((route, each) in refused for each in to_blame), len(names)) for route in ROUTES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_exceptions(refused)]) + "\n"


def _cell(refused: int, cases: int) -> str:
    return "yes" if not refused else "no" if refused == cases else "in part"


def _exceptions(refused: dict[tuple[str, str], str]) -> Iterator[str]:
    """One line per case that some route does not run."""
    yield "Not run, with the message that says so:"
    yield ""
    for name in dict.fromkeys(name for _, name in refused):
        routes = [route for route in ROUTES if (route, name) in refused]
        yield f"- {' and '.join(routes)}: *{name}*. {refused[routes[0], name]}."


def page(text: str, inside: str) -> str:
    """The page with this table."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page has no part between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{inside}\n{END}{after}"


def main() -> None:
    """Print the table, or write it into the page."""
    text = table([known(case) for case in load()])
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
