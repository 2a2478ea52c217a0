"""From parse trees of conditions to `cerite.predicate` expressions; also names, numbers and window sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from typing import cast

from lark import Token, Tree

from cerite.core.errors import QuerySyntaxError, listed, suggestion
from cerite.core.names import quoted, unquoted
from cerite.language.habits import UNITS as UNITS_ELSEWHERE
from cerite.language.habits import about_a_function, alternatives
from cerite.language.parsing import Node, placed, span_of, subtree
from cerite.pattern.nodes import UNITS, Size, unit_named
from cerite.predicate import expression as ex
from cerite.predicate.functions import MICROSECOND, NAMES, arity
from cerite.predicate.functions import UNITS as MICROSECONDS

_MAX_CHAIN = 150  # terms of one `a + b + …`: the tree of a longer one would be too deep
_INT_LIMIT = 2**63


def name_of(node: object) -> str:
    """The name a `name` tree stands for."""
    return unquoted(str(subtree(node).children[0]))


def condition_of(tree: object) -> ex.Expression:
    """The expression of a condition's parse tree."""
    node = subtree(tree)
    return placed(_BUILDERS[str(node.data)](node), node)


def _parts(node: Node) -> tuple[ex.Expression, ...]:
    return tuple(condition_of(child) for child in node.children if isinstance(child, Tree))


def _conditions(node: Node, joint: str, op: str) -> tuple[ex.Expression, ...]:
    """What OR or AND joins; `country = 'FR' OR 'DE'` is refused here, where its values are at hand."""
    parts = _parts(node)
    for at, part in enumerate(parts[1:], 1):
        if not isinstance(part, ex.Literal) or isinstance(part.value, bool):
            continue
        before = parts[at - 1].children[-1] if isinstance(parts[at - 1], ex.And) else parts[at - 1]
        if isinstance(before, ex.Comparison) and before.op == op and isinstance(before.right, ex.Literal):
            values = (before.right, *(each for each in parts[at:] if isinstance(each, ex.Literal)))
            raise QuerySyntaxError(
                f"{joint} joins conditions, and `{part}` is none", span=part.span,
                hint=alternatives(before.left, values, negated=op == "!="),
            )  # fmt: skip
    return parts


def _arithmetic(node: Node) -> ex.Expression:
    children = node.children
    if len(children) > 2 * _MAX_CHAIN:
        raise QuerySyntaxError(f"more than {_MAX_CHAIN} terms in one calculation", span=span_of(node))
    result = condition_of(children[0])
    for operator, right in zip(children[1::2], children[2::2], strict=True):
        operand = condition_of(right)
        span = result.span.to(operand.span) if result.span else None
        result = ex.Arithmetic(cast(ex.ArithmeticOp, str(operator)), result, operand, span=span)
    return result


def _comparison(node: Node) -> ex.Expression:
    left, operator, right = node.children
    written = str(subtree(operator).children[0])
    op = {"==": "=", "<>": "!="}.get(written, written)
    return ex.Comparison(cast(ex.ComparisonOp, op), condition_of(left), condition_of(right))


def _in_list(node: Node) -> ex.Expression:
    operand, items = node.children
    return ex.In(condition_of(operand), tuple(_item(each) for each in subtree(items).children))


def _item(tree: object) -> ex.Literal | ex.Interval:
    node = subtree(tree)
    ends = tuple(_constant(subtree(child)) for child in node.children)
    if len(ends) == 1:
        return ends[0]
    if cast(float, ends[0].value) > cast(float, ends[1].value):
        raise QuerySyntaxError(
            f"the range {ends[0]}..{ends[1]} is empty", span=span_of(node), hint=f"write {ends[1]}..{ends[0]}"
        )
    return ex.Interval(ends[0], ends[1], span=span_of(node))


def _constant(node: Node) -> ex.Literal:
    return (
        ex.Literal(signed_of(node), span=span_of(node))
        if node.data == "signed"
        else cast(ex.Literal, condition_of(node))
    )


def _in_range(node: Node) -> ex.Expression:
    operand, low, high = _parts(node)
    return ex.InRange(operand, low, high)


def _like(node: Node) -> ex.Expression:
    operand, pattern = node.children
    return ex.Like(condition_of(operand), string_of(subtree(pattern)))


def _negative(node: Node) -> ex.Expression:
    operand = subtree(node.children[1])
    if operand.data == "number_literal":
        return ex.Literal(number_of(subtree(operand.children[0]), negative=True))
    if operand.data == "duration_literal":
        return ex.Literal(-_duration(operand))
    return ex.Negative(condition_of(operand))


def _duration(node: Node) -> timedelta:
    """`5 seconds`, as a whole number of microseconds that fits 64 bits."""
    number, word = subtree(node.children[0]), str(node.children[1])
    amount = number_of(number)
    unit = "microseconds" if word.lower() in ("us", "microsecond", "microseconds") else unit_named(word)
    count = Fraction(str(number.children[0])) * MICROSECONDS[cast(str, unit)]
    if count.denominator != 1 or count >= _INT_LIMIT:
        finer = "is not a whole number of microseconds" if count.denominator != 1 else "does not fit 64 bits"
        raise QuerySyntaxError(f"the duration {amount} {word} {finer}", span=span_of(node))
    return int(count) * MICROSECOND


def _call(node: Node) -> ex.Expression:
    written, *arguments = node.children
    name = name_of(written).lower()
    if name.upper() in ex.AGGREGATES:
        return _aggregate(node, name.upper(), [condition_of(each) for each in arguments])
    if name.upper() in ex.MOMENTS and not arguments:
        return ex.Moment(name.upper())
    if name not in NAMES:
        raise QuerySyntaxError(
            f"there is no function `{name_of(written)}`", span=span_of(subtree(written)),
            hint=about_a_function(name, _argument(arguments))
            or suggestion(name, (*NAMES, *map(str.lower, ex.AGGREGATES)))
            or f"there are {', '.join(NAMES)}, and over all events of a variable {', '.join(ex.AGGREGATES)}",
        )  # fmt: skip
    least, most = arity(name)
    if len(arguments) < least or (most is not None and len(arguments) > most):
        wanted = "one value" if most == 1 else f"{least} values or more"
        raise QuerySyntaxError(f"`{name}` takes {wanted}, not {len(arguments)}", span=span_of(node))
    return ex.Call(name, tuple(condition_of(each) for each in arguments))


def _argument(arguments: list[Node | Token]) -> str:
    """The attribute that a call is about, for an example."""
    first = condition_of(arguments[0]) if arguments else None
    return quoted(first.name) if isinstance(first, (ex.Attribute, ex.Reference)) else "price"


def _aggregate(node: Node, function: str, arguments: list[ex.Expression]) -> ex.Expression:
    """`COUNT(y)` or `SUM(y.price)`."""
    argument = arguments[0] if len(arguments) == 1 else None
    if isinstance(argument, ex.Reference):
        return ex.Aggregate(function, argument.variable, argument.name)
    if function == "COUNT" and isinstance(argument, ex.Attribute):
        return ex.Aggregate(function, argument.name)
    if argument is not None and (computed := ex.aggregate_of(function, argument)) is not None:
        return computed
    several = sorted(ex.variables(argument)) if argument is not None else []
    if len(several) > 1:
        raise QuerySyntaxError(
            f"{function} takes the events of one variable, and this reads {listed(several)}", span=span_of(node),
            hint=f"compute with the others outside: `{several[0]}.price * {function}({several[1]}.price)`",
        )  # fmt: skip
    what = f"{function} takes an attribute of a variable" + (", a variable or `*`" if function == "COUNT" else "")
    name = quoted(argument.name) if isinstance(argument, ex.Attribute) else "price"
    example = (
        "COUNT(y), COUNT(y.price) or COUNT(*)" if function == "COUNT" else f"{function}(y.{name}), of the variable y"
    )
    raise QuerySyntaxError(what, span=span_of(node), hint=f"write {example}")


def _aggregate_of_all(node: Node) -> ex.Expression:
    if name_of(node.children[0]).upper() != "COUNT":
        raise QuerySyntaxError("only COUNT takes `*`", span=span_of(node), hint="write COUNT(*), or SUM(y.price)")
    return ex.Aggregate("COUNT", None)


def _aggregate_of_distinct(node: Node) -> ex.Expression:
    written, reference = node.children
    if name_of(written).upper() != "COUNT":
        raise QuerySyntaxError("only COUNT takes DISTINCT", span=span_of(node), hint="write COUNT(DISTINCT y.name)")
    variable, name = map(name_of, subtree(reference).children)
    return ex.Aggregate("COUNT", variable, name, distinct=True)


def _attribute(node: Node) -> ex.Expression:
    token = str(subtree(node.children[0]).children[0])
    if token.upper() == "NULL":
        raise QuerySyntaxError(
            "nothing equals NULL", span=span_of(node), hint="write `price IS NULL` or `price IS NOT NULL`"
        )
    if token.upper() == "NAN":
        raise QuerySyntaxError(
            "NaN counts as NULL, so nothing equals it", span=span_of(node),
            hint="write `price IS NULL`; an attribute of this name stands in back-quotes",
        )  # fmt: skip
    return ex.Attribute(unquoted(token))


def _negated(build: Callable[[Node], ex.Expression]) -> Callable[[Node], ex.Expression]:
    return lambda node: ex.Not(build(node))


_BUILDERS: dict[str, Callable[[Node], ex.Expression]] = {
    "expression": lambda node: ex.Or(_conditions(node, "OR", "=")),
    "conjunction": lambda node: ex.And(_conditions(node, "AND", "!=")),
    "not_": lambda node: ex.Not(condition_of(node.children[0])),
    "comparison": _comparison,
    "in_list": _in_list,
    "not_in_list": _negated(_in_list),
    "in_range": _in_range,
    "not_in_range": _negated(_in_range),
    "like": _like,
    "not_like": _negated(_like),
    "is_null": lambda node: ex.IsNull(condition_of(node.children[0])),
    "is_not_null": lambda node: ex.Not(ex.IsNull(condition_of(node.children[0]))),
    "is_true": lambda node: ex.IsTrue(condition_of(node.children[0])),
    "is_not_true": lambda node: ex.Not(ex.IsTrue(condition_of(node.children[0]))),
    "sum": _arithmetic,
    "product": _arithmetic,
    "dotted_sum": _arithmetic,
    "dotted_product": _arithmetic,
    "negative": _negative,
    "attribute": _attribute,
    "reference": lambda node: ex.Reference(name_of(node.children[0]), name_of(node.children[1])),
    "number_literal": lambda node: ex.Literal(number_of(subtree(node.children[0]))),
    "duration_literal": lambda node: ex.Literal(_duration(node)),
    "call": _call,
    "call_of_all": _aggregate_of_all,
    "call_of_distinct": _aggregate_of_distinct,
    "string_literal": lambda node: ex.Literal(string_of(subtree(node.children[0]))),
    "truth_literal": lambda node: ex.Literal(str(node.children[0]).upper() == "TRUE"),
    "condition_group": lambda node: condition_of(node.children[0]),
}


def number_of(node: Node, *, negative: bool = False) -> int | float:
    """The value of a `number` tree, perhaps after a minus; refused if it does not fit 64 bits."""
    token = cast(Token, node.children[0])
    if len(token) > 400:
        raise QuerySyntaxError("this number is too large", span=span_of(token))
    value = int(token) if token.type == "INT" else ex.written_float(str(token))
    if (isinstance(value, int) and value >= _INT_LIMIT + negative) or math.isinf(value):
        raise QuerySyntaxError("this number does not fit 64 bits", span=span_of(token))
    if negative and isinstance(value, ex.Written):
        return ex.Written(f"-{token}")
    return -value if negative else value


def signed_of(node: object) -> int | float:
    """The value of a `signed` tree: a number, perhaps with a minus."""
    tree = subtree(node)
    return number_of(subtree(tree.children[-1]), negative=len(tree.children) == 2)


def string_of(node: Node) -> str:
    """The text between the quotes, doubled quotes taken as one."""
    token = str(node.children[0])
    return token[1:-1].replace(token[0] * 2, token[0])


def size_of(tree: object, *, of_time: bool = False) -> Size:
    """The window size of a `size` tree; amounts must be positive, event counts whole; `of_time` if only time fits."""
    node = subtree(tree)
    amount, span = signed_of(node.children[0]), span_of(node)
    if amount < 0 or (node.data == "event_size" and amount < 1):
        raise QuerySyntaxError(
            f"a window cannot be {amount} long", span=span,
            hint="WITHIN takes a positive amount: 30 seconds, 500 EVENTS, 10000 [attribute]",
        )  # fmt: skip
    if node.data == "attribute_size":
        return Size(amount, "attribute", name_of(node.children[1]), span=span)
    if node.data == "event_size":
        if not isinstance(amount, int):
            raise QuerySyntaxError(f"{amount} is not a whole number of events", span=span)
        return Size(amount, "events", span=span)
    if node.data == "bare_size":
        plural = "" if amount == 1 else "s"
        others = ("seconds", "minutes") if of_time else ("seconds", "minutes", "EVENTS", "[attribute]")
        written = [f"`{amount} {each.removesuffix('s')}{plural if each.endswith('s') else ''}`" for each in others]
        raise QuerySyntaxError(
            "the time has no unit" if of_time else "the window has no unit", span=span,
            hint=f"write {', '.join(written[:-1])} or {written[-1]}",
        )  # fmt: skip
    return Size(amount, _unit(node.children[1], of_time), span=span)


def _unit(node: Node | Token, of_time: bool) -> str:
    word = str(node) if isinstance(node, Token) else name_of(node)
    unit = unit_named(word)
    if unit is None:
        raise QuerySyntaxError(
            f"unknown time unit `{word}`", span=span_of(node),
            hint=UNITS_ELSEWHERE.get(word.lower()) or suggestion(word, UNITS)
            or f"the units are {', '.join(UNITS)}{'' if of_time else ' and EVENTS'}",
        )  # fmt: skip
    return unit
