"""SREMO as text: `parse_sremo` and `sremo_text` (SRT report, definitions 15, 33, 39, 44 and 45).

    BUY^o>r1 . (true^x)* . SELL[id = r1.id]^o        the report's expression (2)
    (…)[1..4]  (…)[WITHIN 500 ms]                     windows
    e + f   e & f   !e   e*   #(e, f)   @(e, f)        union, intersection, complement, star, ⟲, @

`^o` is the output •, `^x` is ⊗ (also when none is written, as in the report), `>r` stores the event in register r.
A terminal is an event type, a type with a condition, `[condition]` alone, or `true` (⊤). Invariant: what
`sremo_text` prints parses back to an equal pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from lark import Token, Tree

from cerite.core.errors import CeriteError, PatternError, QuerySyntaxError
from cerite.core.names import quoted
from cerite.language.conditions import condition_of, name_of, size_of
from cerite.language.parsing import Node, parse, placed, span_of, subtree
from cerite.pattern import nodes
from cerite.pattern.nodes import ANY_TYPE, Pattern
from cerite.predicate.printing import text as condition_text

_NAMES = frozenset(("eps", "epsilon", "nothing", "true", "false"))
_UNION, _MEET, _CHAIN, _PREFIX, _STAR = range(5)


def parse_sremo(text: str) -> Pattern:
    """The pattern that a SREMO stands for.

    >>> print(parse_sremo("BUY^o>r1 . (true^x)* . SELL[id = r1.id]^o"))
    BUY INTO r1 : (SKIP _):* : SELL[id = r1.id]
    """
    tree = parse(text, "sremo", ("sremo",), "sremo")
    try:
        return _pattern(tree.children[0])
    except CeriteError as error:
        raise error.at(text) from None


def sremo_text(pattern: Pattern) -> str:
    """The pattern in SREMO's syntax; constructs that only CEL has are refused.

    >>> print(sremo_text(parse_sremo("⟲(BUY↑•↓r, [price > r.price]↑•)")))
    #(BUY^o>r, [price > r.price]^o)
    """
    return _render(pattern)[0]


def _pattern(tree: object) -> Pattern:
    node = subtree(tree)
    return placed(_BUILDERS[str(node.data)](node), node)


def _parts(node: Node) -> tuple[Pattern, ...]:
    return tuple(_pattern(child) for child in node.children if isinstance(child, Tree))


def _terminal(node: Node) -> Pattern:
    guard, *rest = map(subtree, node.children)
    output, register = False, None
    for each in rest:
        if each.data == "store":
            register = name_of(each.children[1])
        else:
            output = cast(Token, each.children[0]).type == "MARK"
    type_, condition = None, None
    if guard.data == "typed":
        name = subtree(guard.children[0])
        type_ = None if str(name.children[0]) == ANY_TYPE else name_of(name)
        condition = condition_of(guard.children[1]) if len(guard.children) > 1 else None
    elif guard.data == "conditioned":
        condition = condition_of(guard.children[0])
    return nodes.Event(type_, condition, output, register)


def _counted_window(node: Node) -> Pattern:
    operand, low, high = node.children
    if int(cast(Token, low)) != 1 or int(cast(Token, high)) < 1:
        raise QuerySyntaxError(
            f"a window is [1..w], not [{low}..{high}]", span=span_of(cast(Token, low)), hint=f"write [1..{high}]"
        )
    return nodes.Window(_pattern(operand), nodes.Size.events(int(cast(Token, high))))


_BUILDERS: dict[str, Callable[[Node], Pattern]] = {
    "sum_of_patterns": lambda node: nodes.Union(_parts(node)),
    "meet": lambda node: nodes.Intersection(_parts(node)),
    "chain": lambda node: nodes.Concat(_parts(node)),
    "complement": lambda node: nodes.Complement(_pattern(node.children[1])),
    "star": lambda node: nodes.Iteration(_pattern(node.children[0]), 0, None, contiguous=True),
    "group": lambda node: _pattern(node.children[0]),
    "counted_window": _counted_window,
    "sized_window": lambda node: nodes.Window(_pattern(node.children[0]), size_of(node.children[1])),
    "skip_any": lambda node: nodes.SkipAny(_parts(node)),
    "skip_next": lambda node: nodes.SkipNext(_parts(node)),
    "empty": lambda node: nodes.Empty(),
    "nothing": lambda node: nodes.Nothing(),
    "terminal": _terminal,
}


def _at(pattern: Pattern, level: int) -> str:
    rendered, own = _render(pattern)
    return rendered if own >= level else f"({rendered})"


def _render(node: Pattern) -> tuple[str, int]:
    match node:
        case nodes.Event():
            return _event(node), _STAR
        case nodes.Empty():
            return "eps", _STAR
        case nodes.Nothing():
            return "nothing", _STAR
        case nodes.Union(parts=parts):
            return " + ".join(_at(part, _MEET) for part in parts), _UNION
        case nodes.Intersection(parts=parts):
            return " & ".join(_at(part, _CHAIN) for part in parts), _MEET
        case nodes.Concat(parts=parts):
            return " . ".join(_at(part, _PREFIX) for part in parts), _CHAIN
        case nodes.Complement(operand=operand):
            return f"!{_at(operand, _PREFIX)}", _PREFIX
        case nodes.Iteration(operand=operand, least=0, most=None, contiguous=True):
            return f"{_at(operand, _STAR)}*", _STAR
        case nodes.Window(operand=operand, size=size):
            shown = f"1..{size.amount}" if size.unit == "events" else f"WITHIN {size}"
            return f"({sremo_text(operand)})[{shown}]", _STAR
        case nodes.SkipAny(parts=parts):
            return f"#({', '.join(map(sremo_text, parts))})", _STAR
        case nodes.SkipNext(parts=parts):
            return f"@({', '.join(map(sremo_text, parts))})", _STAR
    raise PatternError(
        f"`{node}` has no spelling in SREMO", hint="print it with str(pattern), which writes CEQL and knows everything"
    )


def _event(event: nodes.Event) -> str:
    condition = "" if event.condition is None else f"[{condition_text(event.condition)}]"
    name = "" if event.type is None else _name(event.type)
    output = "^o" if event.output else ""
    return (name + condition or "true") + output + ("" if event.register is None else f">{_name(event.register)}")


def _name(name: str) -> str:
    return f"`{name}`" if name.lower() in _NAMES or name == ANY_TYPE else quoted(name)
