"""The algebra: immutable nodes that compare by structure.

CEQL, CEL, SREMO and the Python builder all become trees of these nodes; from there on there is one meaning
(`cerite.reference.semantics`) and one compiler. A node's `span` says where in the text it stood; comparison ignores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from operator import is_not
from typing import Any

from cerite.core.errors import PatternError, Span
from cerite.core.names import quoted
from cerite.predicate.expression import Expression, variables

# Invariant: no pattern is nested deeper than `DEEPEST` or has more than `LARGEST` nodes, whoever makes it (a user, or a
# rewrite that doubles its operand), so that no function that follows its structure exhausts the stack or takes forever.

DEEPEST = 64
LARGEST = 200_000


@dataclass(frozen=True, slots=True)
class Pattern:
    """Base of all pattern nodes."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    depth: int = field(default=1, init=False, compare=False, repr=False)
    nodes: int = field(default=1, init=False, compare=False, repr=False)
    children: tuple[Pattern, ...] = field(default=(), init=False, compare=False, repr=False)
    """The node's direct sub-patterns (negated ones included), in writing order."""

    def __post_init__(self) -> None:
        children = tuple(child for name in _written(type(self)) for child in _patterns(getattr(self, name)))
        depth = 1 + max((child.depth for child in children), default=0)
        nodes = 1 + sum(child.nodes for child in children)
        if depth > DEEPEST:
            raise PatternError(
                f"the pattern is nested more than {DEEPEST} levels deep", span=self.span,
                hint="write `a ; b ; c` in one line instead of one inside the other, or split the query",
            )  # fmt: skip
        if nodes > LARGEST:
            raise PatternError(
                f"the pattern, written out, has more than {LARGEST:,} parts", span=self.span,
                hint="nested PERMUTE and SKIP_NEXT multiply their parts; write fewer of them, or split the query",
            )  # fmt: skip
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "children", children)

    def map(self, change: Callable[[Pattern], Pattern]) -> Pattern:
        """The same node over changed sub-patterns; the node itself if none of them changes."""
        if not self.children:
            return self
        updates = {}
        for name in _written(type(self)):
            value = getattr(self, name)
            mapped = _mapped(value, change)
            if mapped is not value:
                updates[name] = mapped
        return replace(self, **updates) if updates else self

    def __str__(self) -> str:
        from cerite.pattern.printing import text

        return text(self)


def _written(node: type[Pattern]) -> tuple[str, ...]:
    """The fields that are given, not derived."""
    if node not in _WRITTEN:
        _WRITTEN[node] = tuple(each.name for each in fields(node) if each.init and each.name != "span")
    return _WRITTEN[node]


_WRITTEN: dict[type, tuple[str, ...]] = {}


def _patterns(value: Any) -> Iterator[Pattern]:
    if isinstance(value, Pattern):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _patterns(item)


def _mapped(value: Any, change: Callable[[Pattern], Pattern]) -> Any:
    if isinstance(value, Pattern):
        return change(value)
    if not isinstance(value, tuple) or not value:
        return value
    mapped = tuple([_mapped(item, change) for item in value])
    return mapped if any(map(is_not, mapped, value)) else value


def walk(pattern: Pattern) -> Iterator[Pattern]:
    """The node and all below it, parents first.

    >>> from cerite.language.ceql import parse_pattern
    >>> [type(node).__name__ for node in walk(parse_pattern("A ; B+"))]
    ['Sequence', 'Event', 'Iteration', 'Event']
    """
    stack = [pattern]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def own_conditions(node: Pattern) -> tuple[Expression, ...]:
    """The conditions of this node itself: those of an event, of a filter, or on a whole pattern."""
    if isinstance(node, Event):
        return () if node.condition is None else (node.condition,)
    if isinstance(node, Filter):
        return tuple(on.condition for on in node.conditions)
    return node.conditions if isinstance(node, Having) else ()


def conditions_of(pattern: Pattern) -> Iterator[Expression]:
    """Every condition anywhere in the pattern."""
    return (condition for node in walk(pattern) for condition in own_conditions(node))


def transform(pattern: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
    """Rebuild bottom-up, replacing each node by `change(node)`."""
    return change(pattern.map(lambda child: transform(child, change)))


# Patterns without sub-patterns: one event, nothing consumed (ε), no match at all (∅).
#
# `Event` is both CEL's `R` (CORE, Figure 2) and SREMO's terminal `φ ↑ o ↓ r` (SRT report, definition 15): one event
# that satisfies a condition, marked (•) or not (⊗), perhaps stored in a register. A marked event is bound to the
# variable named like its type (`_` for any type) and to the register's; an unmarked one is only stored.

ANY_TYPE = "_"


@dataclass(frozen=True, slots=True)
class Empty(Pattern):
    """ε: matches where nothing is consumed."""


@dataclass(frozen=True, slots=True)
class Nothing(Pattern):
    """∅: never matches."""


@dataclass(frozen=True, slots=True)
class Event(Pattern):
    """One event. `type` None is any type; `output` False is SREMO's ⊗."""

    type: str | None
    condition: Expression | None = None
    output: bool = True
    register: str | None = None

    @property
    def labels(self) -> frozenset[str]:
        """The variables the event's position is bound to."""
        if not self.output:
            return frozenset()
        own = frozenset((ANY_TYPE if self.type is None else self.type,))
        return own if self.register is None else own | {self.register}

    @property
    def writes(self) -> frozenset[str]:
        """The registers that hold the event afterwards: its variables, and where it is stored."""
        return self.labels if self.register is None else self.labels | {self.register}


# One pattern after another: with gaps (`;`), with negation in the gaps, or without gaps (`:`, SREMO's `·`).
#
# A part that consumed nothing (ε, from `*` or `?`) is neutral: `A ; B* ; C` is `A ; C OR A ; B+ ; C`.


@dataclass(frozen=True, slots=True)
class Sequence(Pattern):
    """`φ ; ψ`: each part starts after the one before it ends; anything may lie between.

    `absent[i]` holds the patterns negated between part i and part i+1 (`φ ; NOT ν ; ψ`): no occurrence of them lies
    strictly between the end of what comes before and the start of what comes after. `before` and `after` are negated at
    the ends (absence): no occurrence lies wholly before the start, or wholly after the end, inside the window around.
    """

    parts: tuple[Pattern, ...]
    absent: tuple[tuple[Pattern, ...], ...] = ()
    before: tuple[Pattern, ...] = ()
    after: tuple[Pattern, ...] = ()

    def __post_init__(self) -> None:
        if not self.absent:
            object.__setattr__(self, "absent", ((),) * (len(self.parts) - 1))
        Pattern.__post_init__(self)

    @property
    def negated(self) -> tuple[Pattern, ...]:
        """All negated patterns."""
        return (*self.before, *(each for gap in self.absent for each in gap), *self.after)


@dataclass(frozen=True, slots=True)
class Concat(Pattern):
    """`φ : ψ`: each part starts at the very next event."""

    parts: tuple[Pattern, ...]


# One, all, or any order of several patterns: union, intersection, permutation.


@dataclass(frozen=True, slots=True)
class Union(Pattern):
    """`φ OR ψ`; SREMO's `+`."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Intersection(Pattern):
    """`φ AND ψ`: the same interval and positions match both (SRT report, theorem 34); variables of both are bound."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Permute(Pattern):
    """`PERMUTE(φ, ψ, …)`: each occurs, one after the other, in any order."""

    parts: tuple[Pattern, ...]


# Repetition: `φ+`, `φ*`, `φ?`, `φ{n,m}` with gaps, and their contiguous forms `φ:+`, ... (SREMO's star is `φ:*`).


@dataclass(frozen=True, slots=True)
class Iteration(Pattern):
    """φ repeated `least` to `most` times (None: without bound), one repetition after the other."""

    operand: Pattern
    least: int = 1
    most: int | None = None
    contiguous: bool = False


# Which variables a match shows: naming (`AS`) and projection (π).


@dataclass(frozen=True, slots=True)
class Named(Pattern):
    """`φ AS x`: every position of φ is also bound to x (CORE, Figure 2)."""

    operand: Pattern
    variable: str


@dataclass(frozen=True, slots=True)
class Project(Pattern):
    """`π{x, y}(φ)`: other variables are emptied, the interval stays that of the whole match."""

    operand: Pattern
    variables: tuple[str, ...]


# Filters: `φ FILTER x[P] AND y[Q]`, every event of x satisfies P and every event of y satisfies Q.
#
# With a condition that reads other variables (`z[price > x.price]`) the filter is correlated: ICDT's `FILTER P(x,
# z)`.


@dataclass(frozen=True, slots=True)
class On:
    """`x[P]`: the condition P on every event of the variable x."""

    variable: str
    condition: Expression
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def reads(self) -> frozenset[str]:
        """The variables the condition reads; empty for a unary one."""
        return variables(self.condition)


@dataclass(frozen=True, slots=True)
class Filter(Pattern):
    """The matches of `operand` that satisfy all `conditions`."""

    operand: Pattern
    conditions: tuple[On, ...]


@dataclass(frozen=True, slots=True)
class Having(Pattern):
    """`φ FILTER COUNT(y) >= 5`: the matches of `operand` for which all `conditions` are true when they are complete.

    Aggregates range over the operand's own events; `x.price` reads the event most recently bound to x, here or before.
    """

    operand: Pattern
    conditions: tuple[Expression, ...]


# Selection strategies of ICDT 2019, section 4, as operators: which of the matches with the same end are reported.


class Strategy(Enum):
    """STRICT: an interval of the stream. NEXT, LAST: the greatest in ≤next, ≤last. MAX: no strictly larger one."""

    STRICT = "STRICT"
    NEXT = "NEXT"
    LAST = "LAST"
    MAX = "MAX"

    @staticmethod
    def named(word: str) -> Strategy:
        """The strategy a word stands for, in any case; `NXT` is ICDT's spelling of NEXT."""
        upper = word.upper()
        if upper != "NXT" and upper not in Strategy.__members__:
            raise ValueError(f"unknown strategy {word!r}: one of {', '.join(Strategy.__members__)}")
        return Strategy.NEXT if upper == "NXT" else Strategy(upper)


@dataclass(frozen=True, slots=True)
class Select(Pattern):
    """`NEXT(φ)`, or any of the other strategies."""

    strategy: Strategy
    operand: Pattern


# Windows: how far apart a match's first and last event may be, by time, by an attribute, or by number of events.
#
# Both ends belong to the window (CORE: end − start ≤ ε; SRT report, definition 39: max − min + 1 ≤ w).

UNITS = {
    "microseconds": Fraction(1, 1_000), "milliseconds": Fraction(1), "seconds": Fraction(1_000),
    "minutes": Fraction(60_000), "hours": Fraction(3_600_000), "days": Fraction(86_400_000),
}  # fmt: skip
"""In milliseconds."""
_SHORT = {
    "us": "microseconds", "ms": "milliseconds", "s": "seconds", "sec": "seconds", "min": "minutes", "h": "hours",
    "d": "days",
}  # fmt: skip


def unit_named(word: str) -> str | None:
    """The unit a word stands for, if it is one: any case, singular or plural, or an abbreviation.

    >>> unit_named("Minute"), unit_named("ms"), unit_named("EVENTS"), unit_named("weeks")
    ('minutes', 'milliseconds', 'events', None)
    """
    lowered = word.lower()
    unit = _SHORT.get(lowered, lowered if lowered.endswith("s") else lowered + "s")
    return unit if unit in UNITS or unit == "events" else None


def of_floats(width: Fraction) -> int | float:
    """The width that differences of floats are compared with: a whole number as it is, else the nearest double."""
    return int(width) if width.denominator == 1 else float(width)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a window is: an amount of a time unit, of an attribute, or of events."""

    amount: int | float | Fraction
    unit: str = "events"
    attribute: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @staticmethod
    def events(count: int) -> Size:
        """`n EVENTS`."""
        return Size(count, "events")

    @staticmethod
    def of(attribute: str, amount: int | float | Fraction) -> Size:
        """`amount [attribute]`."""
        return Size(amount, "attribute", attribute)

    @property
    def is_time(self) -> bool:
        """Whether the window is measured by the event time."""
        return self.unit in UNITS

    @property
    def measure(self) -> tuple[str, str | None]:
        """What the width counts: windows with the same measure can be compared by their widths."""
        return "time" if self.is_time else self.unit, self.attribute

    @property
    def width(self) -> Fraction:
        """The length exactly as written (`0.1` is a tenth, not the nearest double), for a time window in milliseconds.

        >>> Size(1.001, "seconds").width, Size.of("price", 0.1).width
        (Fraction(1001, 1), Fraction(1, 10))
        """
        exact = Fraction(Decimal(repr(self.amount))) if isinstance(self.amount, float) else Fraction(self.amount)
        return exact * UNITS.get(self.unit, 1)

    def __str__(self) -> str:
        if self.unit == "attribute":
            return f"{self.amount!r} [{quoted(self.attribute or '')}]"
        unit = "EVENTS" if self.unit == "events" else self.unit[:-1] if self.amount == 1 else self.unit
        return f"{self.amount!r} {unit}"


@dataclass(frozen=True, slots=True)
class Window(Pattern):
    """`(φ WITHIN size)`; SREMO's `e[1..w]`."""

    operand: Pattern
    size: Size


# SREMO's selection operators: skip-till-any ⟲ and skip-till-next @ (SRT report, definitions 44 and 45).
#
# Both mean what `cerite.pattern.rewrite.skips` rewrites them to.


@dataclass(frozen=True, slots=True)
class SkipAny(Pattern):
    """`⟲(e1, …, en)`: any events may lie between the parts."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class SkipNext(Pattern):
    """`@(e1, …, en)`: between two parts no occurrence of the second one may lie."""

    parts: tuple[Pattern, ...]


# SREMO's regular negation `!e` (SRT report, section 5.1): any stretch of the stream, even an empty one, that e does
# not match. It marks nothing and leaves the registers as they are (corollary 43: outputs are ignored).


@dataclass(frozen=True, slots=True)
class Complement(Pattern):
    """`COMPLEMENT(e)`, SREMO's `!e`."""

    operand: Pattern
