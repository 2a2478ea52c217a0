"""Conditions as trees: typed expressions over the current event and over variables (registers).

The SRT report's conditions (definition 10) are formulas over the automaton's head `~` and registers `r`; here the
head's attributes are bare names (`Attribute`) and a register's are dotted (`Reference`). A variable of CEQL is a
register: reading it gives the event most recently bound to it (docs/semantics.md, *References*).

Invariant: nodes are immutable and compare by structure; `span` says where in the text a node stood and is ignored
by comparison. No node is nested deeper than `DEEPEST`, so that no function that follows the structure can exhaust the
stack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from decimal import Decimal
from typing import Literal as OneOf
from typing import TypeVar, Union

from cerite.core.errors import PatternError, Span

DEEPEST = 160
Value = Union[int, float, bool, str, timedelta]


class Written(float):
    """A constant with more digits than a float keeps: a float that remembers how it is written."""

    def __new__(cls, text: str) -> Written:
        """The float nearest to the text, which it keeps."""
        self = super().__new__(cls, text)
        self.text = text
        return self

    text: str

    def __repr__(self) -> str:
        return self.text

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        return (self.text,)


def written_float(text: str) -> float:
    """The text as a float, or as `Written` where the float's shortest form would be another number.

    >>> written_float("0.10"), written_float("0.12345678901234567890123")
    (0.1, 0.12345678901234567890123)
    """
    value = float(text)
    exact = math.isfinite(value) and Decimal(text) == Decimal(repr(value))
    return value if exact or math.isinf(value) else Written(text)


AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "COLLECT")
MOMENTS = ("START_TIME", "END_TIME", "DURATION")
ArithmeticOp = OneOf["+", "-", "*", "/", "%"]
ComparisonOp = OneOf["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Expression:
    """Base of all expression nodes."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    depth: int = field(default=1, init=False, compare=False, repr=False)
    children: tuple[Expression, ...] = field(default=(), init=False, compare=False, repr=False)
    """The node's direct sub-expressions, in writing order."""

    def __post_init__(self) -> None:
        children = tuple(child for name in _written(type(self)) for child in _expressions(getattr(self, name)))
        depth = 1 + max((child.depth for child in children), default=0)
        if depth > DEEPEST:
            raise PatternError(
                f"the condition is nested more than {DEEPEST} levels deep", span=self.span,
                hint="remove NOTs and parentheses that are not needed, or compute a column before the query",
            )  # fmt: skip
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "children", children)

    def __str__(self) -> str:
        from cerite.predicate.printing import text

        return text(self)


def _written(node: type[Expression]) -> tuple[str, ...]:
    """The fields that are given, not derived."""
    if node not in _WRITTEN:
        _WRITTEN[node] = tuple(each.name for each in fields(node) if each.init and each.name != "span")
    return _WRITTEN[node]


_WRITTEN: dict[type, tuple[str, ...]] = {}


def _expressions(value: object) -> tuple[Expression, ...]:
    if isinstance(value, Expression):
        return (value,)
    return tuple(item for item in value if isinstance(item, Expression)) if isinstance(value, tuple) else ()


E = TypeVar("E", bound=Expression)


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant: integer, float, boolean, string or duration (`5 seconds`)."""

    value: Value

    def __eq__(self, other: object) -> bool:  # 1, 1.0 and TRUE are different constants
        return isinstance(other, Literal) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Attribute(Expression):
    """An attribute of the event being checked: `price`."""

    name: str


@dataclass(frozen=True, slots=True)
class Reference(Expression):
    """An attribute of another variable's event: `x.price`.

    It reads the event most recently bound to `variable` before the event being checked. `later` is set only by
    `cerite.pattern.references.resolve`, where the variable is bound only afterwards: then it reads the first event
    bound to it from there on.
    """

    variable: str
    name: str
    later: bool = False


@dataclass(frozen=True, slots=True)
class Computed:
    """What an aggregate computes from each event's own attributes, if not just one of them: `price * volume`.

    It is not part of the condition's tree, where attributes are those of the event being checked.
    """

    expression: Expression


@dataclass(frozen=True, slots=True)
class Aggregate(Expression):
    """One value for all events of a variable: `COUNT(y)`, `AVG(y.price)`, `SUM(y.a * y.b)`, `COUNT(DISTINCT y.name)`.

    In a condition on an event it ranges over the events bound before that one; in a condition on a whole pattern, over
    all of the pattern's events. `COUNT(*)` has no variable: it counts all events of a match. `over` is set only where
    automata are built from conditions on whole patterns, which are checked at the event that completes the pattern.
    """

    function: str
    variable: str | None
    name: str | None = None
    distinct: bool = False
    over: OneOf["before", "through", "event", "nothing"] = "before"  # before this event, through it, it alone, none
    of: Computed | None = None  # instead of `name`

    @property
    def taken(self) -> Expression | None:
        """What is taken from each event, in terms of its attributes; None where the events themselves are counted."""
        if self.of is not None:
            return self.of.expression
        return None if self.name is None else Attribute(self.name, span=self.span)

    @property
    def read(self) -> Expression:
        """`taken` as it is written, in terms of the variable's attributes."""
        variable, taken = self.variable, self.taken
        assert variable is not None and taken is not None  # noqa: PT018

        def change(node: Expression) -> Expression:
            return Reference(variable, node.name, span=node.span) if isinstance(node, Attribute) else node

        return transform(taken, change)

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that are read from each event."""
        taken = self.taken
        return frozenset() if taken is None else attributes(taken)


@dataclass(frozen=True, slots=True)
class Moment(Expression):
    """`START_TIME()`, `END_TIME()`, `DURATION()` of a match."""

    function: str


@dataclass(frozen=True, slots=True)
class Negative(Expression):
    """`-e`."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """`left op right`; `/` is true division, `%` has the sign of the dividend; division by zero is NULL."""

    op: ArithmeticOp
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """`abs(e)`, `coalesce(e, f)`, `hour(at)`: one of `functions.NAMES`."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """`left op right`; NULL (or NaN) on either side makes it unknown."""

    op: ComparisonOp
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class And(Expression):
    """Conjunction in three-valued logic."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """Disjunction in three-valued logic."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """Negation in three-valued logic: NOT unknown is unknown."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Interval(Expression):
    """`low..high` inside a list; both ends belong to it."""

    low: Literal
    high: Literal


@dataclass(frozen=True, slots=True)
class In(Expression):
    """`e IN {1, 3, 5..9}`."""

    operand: Expression
    items: tuple[Literal | Interval, ...]


@dataclass(frozen=True, slots=True)
class InRange(Expression):
    """`e IN RANGE(low, high)`; both ends belong to it."""

    operand: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """`e LIKE 'A_%'`: `%` is any text, `_` any one character, a backslash takes the next character as it is."""

    operand: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """`e IS NULL`: never unknown itself."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class IsTrue(Expression):
    """`e IS TRUE`: unknown counts as not true, so `NOT (e IS TRUE)` is the two-valued negation of definition 13."""

    operand: Expression


TRUE = Literal(True)


def walk(expression: Expression) -> Iterator[Expression]:
    """The node and all below it, parents first."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def references(expression: Expression) -> tuple[Reference, ...]:
    """Every `x.a` in the expression."""
    return tuple(node for node in walk(expression) if isinstance(node, Reference))


def aggregates(expression: Expression) -> tuple[Aggregate, ...]:
    """Every aggregate in the expression."""
    return tuple(node for node in walk(expression) if isinstance(node, Aggregate))


def attributes(expression: Expression) -> frozenset[str]:
    """The names of all attributes that are read, from whichever event."""
    names: set[str] = set()
    for node in walk(expression):
        if isinstance(node, (Attribute, Reference)):
            names.add(node.name)
        elif isinstance(node, Aggregate):
            names |= node.attributes
    return frozenset(names)


def aggregate_of(function: str, value: Expression) -> Aggregate | None:
    """The aggregate of a value that is computed from each event of one variable; None if the value is anything else.

    >>> print(aggregate_of("SUM", Arithmetic("*", Reference("y", "a"), Negative(Reference("y", "b")))))
    SUM(y.a * -y.b)
    >>> aggregate_of("SUM", Arithmetic("*", Reference("y", "a"), Reference("x", "b")))
    """
    read = [node for node in walk(value) if not isinstance(node, (Arithmetic, Negative, Call, Literal))]
    names = {node.variable if isinstance(node, Reference) else None for node in read}
    if len(names) != 1 or None in names:
        return None

    def own(node: Expression) -> Expression:
        return Attribute(node.name, span=node.span) if isinstance(node, Reference) else node

    return Aggregate(function, names.pop(), of=Computed(transform(value, own)))


def is_constant(expression: Expression) -> bool:
    """Whether the expression reads no event."""
    return not any(isinstance(node, (Attribute, Reference, Aggregate, Moment)) for node in walk(expression))


def variables(expression: Expression) -> frozenset[str]:
    """The variables that an expression reads, whichever of their events; empty for a unary condition."""
    read = (node.variable for node in walk(expression) if isinstance(node, (Reference, Aggregate)))
    return frozenset(name for name in read if name is not None)


def transform(expression: E, change: Callable[[Expression], Expression]) -> Expression:
    """Rebuild bottom-up, replacing each node by `change(node)`."""
    updates: dict[str, object] = {}
    for name in _written(type(expression)) if expression.children else ():
        value = getattr(expression, name)
        if isinstance(value, Expression):
            mapped: object = transform(value, change)
            same = mapped is value
        elif isinstance(value, tuple):
            items = tuple(transform(item, change) if isinstance(item, Expression) else item for item in value)
            mapped, same = items, all(one is other for one, other in zip(items, value, strict=True))
        else:
            continue
        if not same:
            updates[name] = mapped
    return change(replace(expression, **updates) if updates else expression)  # type: ignore[arg-type]


def conjunction(*parts: Expression | None) -> Expression | None:
    """The AND of the parts that are not None, flat and without duplicates; None if all are.

    >>> print(conjunction(Comparison("=", Attribute("a"), Literal(1)), None, Attribute("b")))
    a = 1 AND b
    """
    operands: list[Expression] = []
    for part in parts:
        for item in part.operands if isinstance(part, And) else (part,):
            if item is not None and item not in operands:
                operands.append(item)
    if not operands:
        return None
    return operands[0] if len(operands) == 1 else And(tuple(operands))
