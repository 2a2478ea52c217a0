"""Type errors, reported before anything runs: the kind of every expression against a schema.

An attribute whose kind is not known (no schema was given) fits everywhere; what is wrong whatever the data, such as
`'a' + 1`, is refused all the same. Invariant: a condition that passes here against a stream's schema raises nothing
when it is evaluated on that stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import product
from typing import Literal as OneOf
from typing import Union, cast

from cerite.core.errors import SchemaError
from cerite.core.schema import Kind
from cerite.predicate import expression as ex
from cerite.predicate.functions import PARTS, ROUNDING, TEXT, TIMES

ValueKind = Union[Kind, OneOf["duration"]]  # columns have a Kind; durations are written or computed
Kinds = frozenset[Union[ValueKind, OneOf["unknown"]]]  # what an expression may be; `unknown` where nothing says
KindOf = Callable[["ex.Attribute | ex.Reference"], Kinds]

ANY: Kinds = frozenset(("int", "float", "bool", "string", "timestamp", "duration", "unknown"))
UNKNOWN: Kinds = frozenset(("unknown",))
NUMBER: Kinds = frozenset(("int", "float"))
BOOL: Kinds = frozenset(("bool",))
STRING: Kinds = frozenset(("string",))
TIMESTAMP: Kinds = frozenset(("timestamp",))
DURATION: Kinds = frozenset(("duration",))


def anything(_: ex.Attribute | ex.Reference) -> Kinds:
    """The lookup without a schema."""
    return ANY


def check_condition(condition: ex.Expression, kind_of: KindOf = anything) -> None:
    """Refuse a condition that is not a truth value or whose parts clash.

    >>> from cerite.language.ceql import parse_condition
    >>> check_condition(parse_condition("price + 'a' > 3"))
    Traceback (most recent call last):
    cerite.core.errors.SchemaError: `+` needs numbers, but `'a'` is a string
    """
    _expect(condition, BOOL, "a condition must be true or false", kind_of)


def kinds_of(node: ex.Expression, kind_of: KindOf = anything) -> Kinds:
    """The kinds the expression's value may have, after checking everything below it."""
    match node:
        case ex.Literal(value=value):
            return _literal_kinds(value)
        case ex.Attribute() | ex.Reference():
            return kind_of(node)
        case ex.Negative(operand=operand):
            return _expect(operand, NUMBER | DURATION, "`-` needs a number", kind_of)
        case ex.Arithmetic():
            return _arithmetic(node, kind_of)
        case ex.Call():
            return _call(node, kind_of)
        case ex.Aggregate():
            return _aggregate(node, kind_of)
        case ex.Moment():
            return ANY
        case ex.Comparison(op=op, left=left, right=right):
            _comparable(op, node, left, right, kind_of)
        case ex.And(operands=operands) | ex.Or(operands=operands):
            for each in operands:
                _expect(each, BOOL, "AND and OR join conditions", kind_of)
        case ex.Not(operand=operand) | ex.IsTrue(operand=operand):
            _expect(operand, BOOL, "NOT and IS TRUE need a condition", kind_of)
        case ex.IsNull(operand=operand):
            kinds_of(operand, kind_of)
        case ex.In(operand=operand, items=items):
            for item in items:
                ends = (item.low, item.high) if isinstance(item, ex.Interval) else (item,)
                for end in ends:
                    _comparable(">=" if len(ends) > 1 else "=", item, operand, end, kind_of)
        case ex.InRange(operand=operand, low=low, high=high):
            _comparable(">=", node, operand, low, kind_of)
            _comparable("<=", node, operand, high, kind_of)
        case ex.Like(operand=operand):
            _expect(operand, STRING, "LIKE needs a string", kind_of)
        case _:
            raise TypeError(f"not an expression: {node!r}")
    return BOOL


def _expect(node: ex.Expression, wanted: Kinds, message: str, kind_of: KindOf) -> Kinds:
    return _fitting(node, kinds_of(node, kind_of), wanted, message)


def _fitting(node: ex.Expression, kinds: Kinds, wanted: Kinds, message: str) -> Kinds:
    if not kinds & wanted or ("unknown" not in kinds and not kinds <= wanted):
        raise SchemaError(f"{message}, but `{node}` is {_described(kinds)}", span=node.span)
    return kinds & (wanted | UNKNOWN)


def _arithmetic(node: ex.Arithmetic, kind_of: KindOf) -> Kinds:
    sides = kinds_of(node.left, kind_of), kinds_of(node.right, kind_of)
    results: set[ValueKind] = set()
    used: tuple[set[str], set[str]] = (set(), set())
    for left, right in product(*sides):
        result = _result(left, node.op, right)
        if result is not None:
            results.add(result)
            used[0].add(left)
            used[1].add(right)
    for kinds, fitting in zip(sides, used, strict=True):
        if not fitting or ("unknown" not in kinds and not kinds <= fitting):
            raise _not_numbers(node, sides)
    return frozenset(results) | (UNKNOWN & (sides[0] | sides[1]))


def _not_numbers(node: ex.Arithmetic, sides: tuple[Kinds, Kinds]) -> SchemaError:
    known = [each for each in zip((node.left, node.right), sides, strict=True) if "unknown" not in each[1]]
    wrong, kinds = next((each for each in known if not each[1] <= NUMBER), known[0])
    together: Kinds = frozenset().union(*(each for _, each in known))
    return SchemaError(
        f"`{node.op}` needs numbers, but `{wrong}` is {_described(kinds)}", span=wrong.span, hint=_time_hint(together)
    )


def _result(left: str, op: str, right: str) -> ValueKind | None:
    if left in NUMBER and right in NUMBER:
        return "float" if op == "/" or "float" in (left, right) else "int"
    return cast("ValueKind | None", TIMES.get((left, op, right)))


def _time_hint(together: Kinds) -> str | None:
    if not together & (TIMESTAMP | DURATION):
        return None
    if together & NUMBER:
        return (
            "subtract timestamps and compare the difference with a duration (`at - x.at < 5 seconds`), or add a "
            "duration to a timestamp; a time that is a number is compared in its own unit: write 5000 if it counts "
            "milliseconds, 5 if it counts seconds"
        )
    return "subtract timestamps from each other (`at - x.at < 5 seconds`), or add durations to them or subtract them"


def _call(node: ex.Call, kind_of: KindOf) -> Kinds:
    name, shown = node.function, f"`{node.function}`"
    if name == "coalesce":
        return _coalesced(node, kind_of)
    (argument,) = node.arguments
    if name in PARTS:
        _expect(argument, TIMESTAMP, f"{shown} needs a timestamp", kind_of)
        return frozenset(("int",))
    if name in TEXT:
        _expect(argument, STRING, f"{shown} needs a string", kind_of)
        return frozenset(("int",)) if name == "length" else STRING
    wanted = NUMBER if name in ROUNDING else NUMBER | DURATION
    return _expect(argument, wanted, f"{shown} needs a number", kind_of)


def _aggregate(node: ex.Aggregate, kind_of: KindOf) -> Kinds:
    """COUNT is a whole number, AVG a float, COLLECT no value to compute with; the others have the attribute's kind."""
    if node.variable is None or node.taken is None:
        return frozenset(("int",))
    kinds = kinds_of(node.read, kind_of)
    if node.function == "COUNT":
        return frozenset(("int",))
    if node.function in ("SUM", "AVG"):
        _fitting(node.read, kinds, NUMBER, f"{node.function} needs numbers")
        return frozenset(("float",)) if node.function == "AVG" else kinds & (NUMBER | UNKNOWN)
    if node.function in ("MIN", "MAX"):
        return _fitting(node.read, kinds, ANY - BOOL, f"{node.function} needs values that have an order")
    return ANY if node.function == "COLLECT" else kinds


def _coalesced(node: ex.Call, kind_of: KindOf) -> Kinds:
    """The one kind of all arguments; among floats, only a literal may be a whole number."""
    known: list[tuple[ex.Expression, Kinds]] = []
    for argument in node.arguments:
        kinds = kinds_of(argument, kind_of)
        whole = kinds == {"int"} and isinstance(argument, ex.Literal)
        if "unknown" not in kinds and not (whole and any(each == {"float"} for _, each in known)):
            known = [] if kinds == {"float"} and all(isinstance(each, ex.Literal) for each, _ in known) else known
            known.append((argument, kinds))
    for argument, kinds in known[1:]:
        if kinds != known[0][1]:
            numbers = kinds | known[0][1] <= NUMBER
            raise SchemaError(
                f"`coalesce` takes values of one kind, but `{known[0][0]}` is {_named(known[0][1])} and `{argument}` "
                f"is {_named(kinds)}",
                span=argument.span, hint="turn whole numbers into floats: `1.0 * id`" if numbers else None,
            )  # fmt: skip
    return known[0][1] if known else ANY


def _named(kinds: Kinds) -> str:
    whole = {"int": "a whole number", "float": "a float"}
    return whole.get(next(iter(kinds)), "") or _described(kinds) if len(kinds) == 1 else _described(kinds)


def _comparable(op: str, node: ex.Expression, left: ex.Expression, right: ex.Expression, kind_of: KindOf) -> None:
    sides = (kinds_of(left, kind_of), kinds_of(right, kind_of))
    for one, other, literal in ((sides[0], sides[1], right), (sides[1], sides[0], left)):
        if one == TIMESTAMP and other == STRING and _is_instant(literal):
            return
    groups = [{_group(kind) for kind in side - UNKNOWN} for side in sides]
    doubt = any("unknown" in side for side in sides)
    if not groups[0] & groups[1] or (not doubt and (groups[0] != groups[1] or len(groups[0]) > 1)):
        if doubt and "timestamp" in groups[0] | groups[1] and "string" in groups[0] | groups[1]:
            return  # the text may be a time
        hint = "write the timestamp as '2024-05-01T12:30:00'" if "timestamp" in groups[0] | groups[1] else None
        hint = _time_hint(sides[0] | sides[1]) if "duration" in groups[0] | groups[1] else hint
        quoted = next(filter(None, map(_quoted_number, (left, right))), None)
        if quoted is not None and "number" in groups[0] | groups[1]:
            hint = f"a number has no quotes: {quoted}"
        raise SchemaError(
            f"`{op}` compares things of one kind, but `{left}` is {_described(sides[0])} "
            f"and `{right}` is {_described(sides[1])}",
            span=node.span, hint=hint,
        )  # fmt: skip
    if op not in ("=", "!=") and BOOL in sides:
        raise SchemaError(f"booleans have no order for `{op}`", span=node.span, hint="use `=` or `!=`")


def _group(kind: str) -> str:
    return "number" if kind in ("int", "float") else kind


def _quoted_number(node: ex.Expression) -> str | None:
    """The number that a constant text spells."""
    text = node.value.strip() if isinstance(node, ex.Literal) and isinstance(node.value, str) else ""
    return text if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) else None


def _is_instant(node: ex.Expression) -> bool:
    try:
        return isinstance(node, ex.Literal) and bool(datetime.fromisoformat(str(node.value)))
    except ValueError:
        return False


def _literal_kinds(value: object) -> Kinds:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, (str, timedelta)):
        return STRING if isinstance(value, str) else DURATION
    return frozenset(("int",)) if isinstance(value, int) else frozenset(("float",))


def _described(kinds: Kinds) -> str:
    names = {_group(kind) for kind in kinds - UNKNOWN}
    articles = {"int": "an int"}
    return " or ".join(articles.get(name, f"a {name}") for name in sorted(names))
