"""Wayeb's sentences: Boolean formulas over predicates on one event, read into conditions and event types.

The algebra keeps an event's type apart from its condition; Wayeb does not (`IsEventTypePredicate` is a predicate like
any other). So a type test is first a condition of its own, `_IsType`, and `event_of` then works out, for every type
that the sentence mentions, what is left of the sentence: `^(|(BUY,SELL),P)` becomes `BUY[P] OR SELL[P]`. A type that is
not mentioned cannot be excluded in the algebra, so a sentence that tells types apart must name those it allows.

`-` is the two-valued negation of definition 13: it holds wherever its operand does not, NULLs included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from cerite.core.errors import PatternError, QuerySyntaxError, suggestion
from cerite.core.names import quoted
from cerite.language.conditions import name_of, signed_of, string_of
from cerite.language.parsing import Node, span_of, subtree
from cerite.pattern.nodes import Event, Nothing, Pattern, Union
from cerite.predicate import expression as ex

_FALSE = ex.Literal(False)
_EVENT_TYPE = "EventType"  # what Wayeb's predicates call the event's type where they take an attribute


@dataclass(frozen=True, slots=True)
class _IsType(ex.Expression):
    """The event has this type."""

    name: str


# ---------------------------------------------------------------- from sentences to events
def negated(operand: ex.Expression) -> ex.Expression:
    """The condition that holds wherever the operand does not."""
    return ex.Not(ex.IsTrue(operand))


def event_of(sentence: ex.Expression, register: str | None = None) -> Pattern:
    """One marked event that satisfies the sentence, stored in the register.

    >>> both = ex.Or((_IsType("BUY"), _IsType("SELL")))
    >>> print(event_of(ex.And((both, ex.Comparison(">", ex.Attribute("price"), ex.Literal(9.0)))), "x"))
    BUY[price > 9.0] INTO x OR SELL[price > 9.0] INTO x
    """
    types = tuple(dict.fromkeys(node.name for node in ex.walk(sentence) if isinstance(node, _IsType)))
    cases: dict[str | None, ex.Expression] = {each: _given(sentence, each) for each in types}
    otherwise = _given(sentence, None)
    if otherwise != _FALSE:
        if any(case != otherwise for case in cases.values()):
            raise _open_type(sentence)
        cases = {None: otherwise}
    events = tuple(
        Event(kind, None if case == ex.TRUE else case, True, register, span=sentence.span)
        for kind, case in cases.items()
        if case != _FALSE
    )
    if len(events) == 1:
        return events[0]
    return Union(events, span=sentence.span) if events else Nothing(span=sentence.span)


def _open_type(sentence: ex.Expression) -> PatternError:
    return PatternError(
        "this distinguishes event types, but leaves open which types an event may have", span=sentence.span,
        hint="name them: |(IsEventTypePredicate(B),IsEventTypePredicate(C)); alternatives of which only some have "
        "a type are +(…,…)",
    )  # fmt: skip


def _given(sentence: ex.Expression, kind: str | None) -> ex.Expression:
    """What the sentence demands of an event of this type; None is any type that it does not mention."""

    def change(node: ex.Expression) -> ex.Expression:
        match node:
            case _IsType(name=name):
                return ex.Literal(name == kind)
            case ex.And(operands=operands):
                return _folded(node, operands, neutral=ex.TRUE, deciding=_FALSE)
            case ex.Or(operands=operands):
                return _folded(node, operands, neutral=_FALSE, deciding=ex.TRUE)
            case ex.IsTrue(operand=ex.Literal() as constant):
                return constant
            case ex.Not(operand=ex.Literal(value=value)):
                return ex.Literal(not value)
        return node

    return ex.transform(sentence, change)


def _folded(
    node: ex.And | ex.Or, operands: tuple[ex.Expression, ...], *, neutral: ex.Literal, deciding: ex.Literal
) -> ex.Expression:
    distinct = tuple(dict.fromkeys(each for each in operands if each != neutral))
    if deciding in distinct:
        return deciding
    if len(distinct) > 1:
        return type(node)(distinct, span=node.span)
    return distinct[0] if distinct else neutral


# ---------------------------------------------------------------- arguments
@dataclass(frozen=True, slots=True)
class _Argument:
    """A kind of argument: what it is, an example, which nodes are one, and what it becomes."""

    what: str
    example: str
    fits: Callable[[Node], bool]
    read: Callable[[Node], Any]


def register_of(node: Node) -> str:
    """The register that `"x"` names."""
    if not _is_register(node) or not string_of(node):
        raise QuerySyntaxError("a register is a name in double quotes", span=span_of(node), hint='write ["x"]')
    return string_of(node)


def _is_register(node: Node) -> bool:
    return node.data == "string" and str(node.children[0]).startswith('"')


def _is_word(node: Node) -> bool:
    return node.data == "name" or (node.data == "string" and not _is_register(node))


def _attribute(node: Node) -> ex.Attribute:
    if name_of(node) == _EVENT_TYPE:
        raise PatternError(
            "an event's type can only be tested, not compared", span=span_of(node),
            hint="write IsEventTypePredicate(A); for the type of a stored event, one alternative a type: +(…,…)",
        )  # fmt: skip
    return ex.Attribute(name_of(node), span=span_of(node))


def _word(node: Node) -> ex.Literal:
    return ex.Literal(name_of(node) if node.data == "name" else string_of(node), span=span_of(node))


_NAME = _Argument("an attribute's name", "price", lambda node: node.data == "name", _attribute)
_WORD = _Argument("a word or 'text in single quotes'", "INTC", _is_word, _word)
_NUMBER = _Argument(
    "a number",
    "500.0",
    lambda node: node.data == "constant",
    lambda node: ex.Literal(signed_of(node), span=span_of(node)),
)
_REGISTER = _Argument(
    'a register in double quotes, "x",',
    '"x"',
    _is_register,
    lambda node: ex.Reference(register_of(node), "", span=span_of(node)),
)


# ---------------------------------------------------------------- predicates
def _compared(op: str) -> Callable[..., ex.Expression]:
    return lambda left, right: ex.Comparison(cast(ex.ComparisonOp, op), left, right)


def _compared_to_stored(op: str) -> Callable[..., ex.Expression]:
    """A comparison with the same attribute of the event in the register."""
    return lambda left, register: ex.Comparison(cast(ex.ComparisonOp, op), left, replace(register, name=left.name))


def _between(left: ex.Attribute, low: ex.Literal, high: ex.Literal) -> ex.Expression:
    """`BT`: the lower end belongs to the range, the upper end does not."""
    return ex.And((ex.Comparison(">=", left, low), ex.Comparison("<", left, high)))


_OPS = {"EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_PREDICATES: dict[str, tuple[tuple[_Argument, ...], Callable[..., ex.Expression]]] = {
    "IsEventTypePredicate": ((_WORD,), lambda word: _IsType(word.value)),
    "TruePredicate": ((), lambda: ex.Literal(True)),
    "BT": ((_NAME, _NUMBER, _NUMBER), _between),
    "EQStr": ((_NAME, _WORD), _compared("=")),
    "EQAttrStr": ((_NAME, _REGISTER), _compared_to_stored("=")),
    **{name: ((_NAME, _NUMBER), _compared(op)) for name, op in _OPS.items()},
    **{f"{name}Attr": ((_NAME, _REGISTER), _compared_to_stored(op)) for name, op in _OPS.items()},
}
_SPATIAL = ("WithinCirclePredicate", "OutsideCirclePredicate", "DistanceBetweenPredicate", "HeadingTowardsPredicate")


def predicate_of(node: Node) -> ex.Expression:
    """The condition that a predicate stands for."""
    head, *arguments = map(subtree, node.children)
    name = name_of(head)
    if name not in _PREDICATES:
        raise _unknown(head)
    if name == "EQStr" and len(arguments) == 2 and arguments[0].data == "name" and name_of(arguments[0]) == _EVENT_TYPE:
        name, arguments = "IsEventTypePredicate", arguments[1:]
    wanted, make = _PREDICATES[name]
    if len(arguments) != len(wanted):
        number = f"{len(arguments) or 'no'} argument{'' if len(arguments) == 1 else 's'}"
        raise QuerySyntaxError(f"`{name}` has {number} here", span=span_of(node), hint=_usage(name, arguments))
    for argument, each in zip(wanted, arguments, strict=True):
        if not argument.fits(each):
            meant = _sibling(name, each) if each is arguments[-1] else name
            raise QuerySyntaxError(f"{argument.what} belongs here", span=span_of(each), hint=_usage(meant, arguments))
    return make(*(argument.read(each) for argument, each in zip(wanted, arguments, strict=True)))


def _usage(name: str, arguments: list[Node]) -> str:
    """How the predicate is written, with the attribute that was given."""
    wanted, _ = _PREDICATES[name]
    examples = [argument.example for argument in wanted]
    if arguments and _NAME in wanted and _NAME.fits(arguments[0]):
        examples[0] = quoted(name_of(arguments[0]))
    return f"write {name}({','.join(examples)})"


def _sibling(name: str, last: Node) -> str:
    """The predicate for the same comparison that takes what was written: GTAttr for GT(price,"x")."""
    stem = name.removesuffix("Str").removesuffix("Attr")
    if _is_register(last):
        meant = f"{stem}AttrStr" if name.endswith("Str") else f"{stem}Attr"
    else:
        meant = stem if _NUMBER.fits(last) else f"{stem}Str"
    return meant if stem in _OPS and meant in _PREDICATES else name


def _unknown(head: Node) -> PatternError:
    name = name_of(head)
    if name in _SPATIAL:
        return PatternError(
            f"`{name}` is geometry, which conditions do not have here", span=span_of(head),
            hint="compute it into a column of the events and compare that: LT(distance,5.0)",
        )  # fmt: skip
    return PatternError(
        f"there is no predicate `{name}`", span=span_of(head),
        hint=suggestion(name, _PREDICATES) or f"the predicates are {', '.join(sorted(_PREDICATES))}",
    )  # fmt: skip
