"""Type errors found before anything runs: the kind of every expression against a schema.

An attribute whose kind is not known (no schema was given) fits everywhere; what is wrong whatever the data, such as
`'a' + 1`, is refused all the same. Invariant: a condition that passes here against a stream's schema raises nothing
when it is evaluated on that stream.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from cerite.errors import SchemaError
from cerite.predicate.expression import (
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    In,
    InRange,
    Interval,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Reference,
)
from cerite.schema import Kind

Kinds = frozenset[Kind]  # what an expression may be; all five where nothing is known
KindOf = Callable[["Attribute | Reference"], Kinds]

ANY: Kinds = frozenset(("int", "float", "bool", "string", "timestamp"))
NUMBER: Kinds = frozenset(("int", "float"))
BOOL: Kinds = frozenset(("bool",))
STRING: Kinds = frozenset(("string",))
TIMESTAMP: Kinds = frozenset(("timestamp",))


def anything(_: Attribute | Reference) -> Kinds:
    """The lookup without a schema."""
    return ANY


def check_condition(condition: Expression, kind_of: KindOf = anything) -> None:
    """Refuse a condition that is not a truth value or whose parts clash.

    >>> from cerite.language.ceql import parse_condition
    >>> check_condition(parse_condition("price + 'a' > 3"))
    Traceback (most recent call last):
    cerite.errors.SchemaError: `+` needs numbers, but `'a'` is a string
    """
    _expect(condition, BOOL, "a condition must be true or false", kind_of)


def kinds_of(node: Expression, kind_of: KindOf = anything) -> Kinds:
    """The kinds the expression's value may have, after checking everything below it."""
    match node:
        case Literal(value=value):
            return _literal_kinds(value)
        case Attribute() | Reference():
            return kind_of(node)
        case Negative(operand=operand):
            return _expect(operand, NUMBER, "`-` needs a number", kind_of)
        case Arithmetic(op=op, left=left, right=right):
            sides = [_expect(side, NUMBER, f"`{op}` needs numbers", kind_of) for side in (left, right)]
            if op == "/":
                return frozenset(("float",))
            return frozenset(("int",)) if sides == [{"int"}, {"int"}] else NUMBER
        case Comparison(op=op, left=left, right=right):
            _comparable(op, node, left, right, kind_of)
        case And(operands=operands) | Or(operands=operands):
            for each in operands:
                _expect(each, BOOL, "AND and OR join conditions", kind_of)
        case Not(operand=operand) | IsTrue(operand=operand):
            _expect(operand, BOOL, "NOT and IS TRUE need a condition", kind_of)
        case IsNull(operand=operand):
            kinds_of(operand, kind_of)
        case In(operand=operand, items=items):
            for item in items:
                ends = (item.low, item.high) if isinstance(item, Interval) else (item,)
                for end in ends:
                    _comparable(">=" if len(ends) > 1 else "=", item, operand, end, kind_of)
        case InRange(operand=operand, low=low, high=high):
            _comparable(">=", node, operand, low, kind_of)
            _comparable("<=", node, operand, high, kind_of)
        case Like(operand=operand):
            _expect(operand, STRING, "LIKE needs a string", kind_of)
        case _:
            raise TypeError(f"not an expression: {node!r}")
    return BOOL


def _expect(node: Expression, wanted: Kinds, message: str, kind_of: KindOf) -> Kinds:
    found = kinds_of(node, kind_of)
    if not found & wanted or (found != ANY and not found <= wanted):
        raise SchemaError(f"{message}, but `{node}` is {_described(found)}", span=node.span)
    return found & wanted


def _comparable(op: str, node: Expression, left: Expression, right: Expression, kind_of: KindOf) -> None:
    sides = (kinds_of(left, kind_of), kinds_of(right, kind_of))
    for one, other, literal in ((sides[0], sides[1], right), (sides[1], sides[0], left)):
        if one == TIMESTAMP and other == STRING and _is_instant(literal):
            return
    groups = [{_group(kind) for kind in side} for side in sides]
    known = [group for side, group in zip(sides, groups, strict=True) if side != ANY]
    if len(known) == 2 and (known[0] != known[1] or len(known[0]) > 1):
        hint = "write the timestamp as '2024-05-01T12:30:00'" if "timestamp" in known[0] | known[1] else None
        raise SchemaError(
            f"`{op}` compares things of one kind, but `{left}` is {_described(sides[0])} "
            f"and `{right}` is {_described(sides[1])}",
            span=node.span, hint=hint,
        )  # fmt: skip
    if op not in ("=", "!=") and BOOL in sides:
        raise SchemaError(f"booleans have no order for `{op}`", span=node.span, hint="use `=` or `!=`")


def _group(kind: str) -> str:
    return "number" if kind in ("int", "float") else kind


def _is_instant(node: Expression) -> bool:
    try:
        return isinstance(node, Literal) and bool(datetime.fromisoformat(str(node.value)))
    except ValueError:
        return False


def _literal_kinds(value: object) -> Kinds:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, str):
        return STRING
    return frozenset(("int",)) if isinstance(value, int) else frozenset(("float",))


def _described(kinds: Kinds) -> str:
    names = {_group(kind) for kind in kinds}
    articles = {"int": "an int"}
    return " or ".join(articles.get(name, f"a {name}") for name in sorted(names))
