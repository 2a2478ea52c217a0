"""Patterns that can never match, by simple reasoning: `reason(query)` says why, or None where a match is not excluded.

It follows the pattern in the order of its events, with the registers that may hold something by then, and finds:

- a condition that reads a variable before anything can be bound to it, such as `(_ AS d FILTER d[price < d.price]):+`,
  whose first d has none before it, or `BUY+ AS y FILTER y[price > BUY.price]`, whose first y is the first BUY
  (docs/semantics.md, *References*: the condition is false);
- an aggregate of a variable that nothing is bound to yet, such as `BUY+ AS y FILTER y[price > AVG(y.price)]`: over no
  event it is NULL, and no price is more than that; a count that its pattern does not reach (`BUY{1,3} AS y FILTER
  COUNT(y) > 3`);
- a condition that is false whatever the event, such as `1 = 2`;
- an end that is never marked, such as `A : SKIP B`: a match is complete at its last marked event;
- more events than its window of EVENTS holds, ∅, and an AND of different event types.

Invariant: a pattern with a reason has no match on any stream; nothing is claimed about the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from cerite.core.errors import Span
from cerite.pattern import nodes
from cerite.pattern.query import QuerySpec
from cerite.pattern.references import resolve
from cerite.pattern.rewrite.counts import threshold
from cerite.pattern.variables import Chain, counts, may_precede_first, nullable, visible, written
from cerite.predicate import expression as ex
from cerite.predicate.evaluate import value_of

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why nothing matches, where, and what to write instead."""

    message: str
    span: Span | None = None
    hint: str | None = None


def reason(query: QuerySpec) -> Reason | None:
    """Why the query can never match, where that is easy to see.

    >>> from cerite.language.ceql import parse_query
    >>> reason(parse_query("SELECT * FROM S WHERE (_ AS d FILTER d[price < d.price]):+")).message
    'nothing can match: `d.price` is read before anything is bound to `d`'
    """
    pattern = resolve(query.where)
    why = _impossible(pattern, frozenset())
    if why is None and not _may_end(pattern) and not nullable(pattern):
        why = Reason(
            "nothing can match: the pattern ends with an event that it does not mark", query.where.span,
            "a match is complete at its last marked event: leave the last SKIP out, or mark the event",
        )  # fmt: skip
    if why is None and query.within is not None:
        why = _too_small(pattern, query.within)
    return why


def _impossible(node: nodes.Pattern, before: Names) -> Reason | None:
    """Why the pattern has no match where only the registers `before` may hold something."""
    match node:
        case nodes.Nothing():
            return Reason("nothing can match NOTHING", node.span)
        case nodes.Event(condition=condition):
            return None if condition is None else _unsatisfiable(condition, before)
        case nodes.Filter(operand=operand, conditions=conditions):
            inner = _impossible(operand, before)
            return inner or next((why for on in conditions if (why := _filter(on, operand, before))), None)
        case nodes.Having(operand=operand, conditions=conditions):
            inner = _impossible(operand, before)
            return inner or next((why for each in conditions if (why := _uncounted(each, operand))), None)
        case nodes.Union(parts=parts):
            reasons = [_impossible(part, before) for part in parts]
            return reasons[0] if all(reasons) else None
        case nodes.Intersection(parts=parts):
            return next((why for part in parts if (why := _impossible(part, before))), None) or _types(node)
        case nodes.Iteration(operand=operand, least=least):
            return _impossible(operand, before) if least else None
        case nodes.Complement() | nodes.Empty():
            return None
        case nodes.Window(operand=operand, size=size):
            return _impossible(operand, before) or _too_small(operand, size)
        case _ if isinstance(node, (*Chain, nodes.Permute)):
            everything = before.union(*map(written, node.parts)) if isinstance(node, nodes.Permute) else before
            for part in node.parts:
                why = _impossible(part, everything)
                if why is not None:
                    return why
                everything |= written(part)
            return None
    return next((why for part in visible(node) if (why := _impossible(part, before))), None)


def _filter(on: nodes.On, operand: nodes.Pattern, before: Names) -> Reason | None:
    if counts(operand, on.variable)[0] == 0:
        return None  # where it binds nothing, the filter says nothing
    ahead = {each.variable for each in ex.references(on.condition) if each.later}
    others = frozenset(name for name in on.reads if name in ahead or may_precede_first(operand, name, on.variable))
    return _unsatisfiable(on.condition, before | others)


def _unsatisfiable(condition: ex.Expression, known: Names) -> Reason | None:
    for each in ex.references(condition):
        if each.variable not in known:
            name, place = each.variable, f"`{each}` is read before anything is bound to `{each.variable}`"
            first = f"bind a first one before: `… AS {name} ; (… AS {name} FILTER {name}[…])+`"
            return Reason(f"nothing can match: {place}", each.span, first)
    for part in condition.operands if isinstance(condition, ex.And) else (condition,):
        if ex.is_constant(part) and value_of(part, {}) is not True:
            return Reason(f"nothing can match: `{part}` is never true", part.span, _meant_as_name(part))
        if isinstance(part, (ex.Comparison, ex.In, ex.InRange)):
            empty = next((node for side in part.children if (node := _empty(side, known))), None)
            if empty is not None:
                of = empty.variable
                return Reason(
                    f"nothing can match: `{empty}` is NULL as long as nothing is bound to `{of}`", empty.span,
                    f"let the first one pass: `COUNT({of}) = 0 OR {part}`",
                )  # fmt: skip
    return None


def _empty(node: ex.Expression, known: Names) -> ex.Aggregate | None:
    """An aggregate that makes the whole value NULL, because nothing is bound to its variable by then."""
    if isinstance(node, ex.Aggregate):
        return node if node.function != "COUNT" and node.variable is not None and node.variable not in known else None
    if isinstance(node, (ex.Arithmetic, ex.Negative)):
        return next((each for child in node.children if (each := _empty(child, known))), None)
    return None


def _uncounted(condition: ex.Expression, operand: nodes.Pattern) -> Reason | None:
    """Why the pattern never has as many, or as few, events as a condition on the whole pattern requires."""
    for part in condition.operands if isinstance(condition, ex.And) else (condition,):
        bounds = threshold(part)
        if bounds is not None:
            variable, (low, high) = bounds
            least, most = counts(operand, variable)
            if most < low or high < least:
                number = f"at most {int(most)}" if most < low else f"at least {int(least)}"
                return Reason(
                    f"nothing can match: the pattern binds {number} to `{variable}`, never `{part}`", part.span
                )
    return None


def _types(node: nodes.Intersection) -> Reason | None:
    types = [part.type for part in map(_event, node.parts) if part is not None and part.type is not None]
    if len(set(types)) < 2:
        return None
    return Reason(
        f"nothing can match: no event is both `{types[0]}` and `{next(t for t in types if t != types[0])}`", node.span,
        "AND means the same event here; write OR for either, PERMUTE(…) for both in any order",
    )  # fmt: skip


def _event(node: nodes.Pattern) -> nodes.Event | None:
    while isinstance(node, (nodes.Named, nodes.Filter)):
        node = node.operand
    return node if isinstance(node, nodes.Event) else None


def _may_end(node: nodes.Pattern) -> bool:
    """Whether some match that consumes an event may end with a marked one."""
    match node:
        case nodes.Event(output=output):
            return output
        case nodes.Complement() | nodes.Empty() | nodes.Nothing():
            return False
        case nodes.Union(parts=parts) | nodes.Permute(parts=parts):
            return any(map(_may_end, parts))
        case _ if isinstance(node, Chain):
            for part in reversed(node.parts):
                if _may_end(part):
                    return True
                if not nullable(part):
                    return False
            return False
    return all(map(_may_end, visible(node)))


def _too_small(node: nodes.Pattern, size: nodes.Size) -> Reason | None:
    needed = _least(node)
    if size.unit != "events" or needed <= size.amount:
        return None
    return Reason(
        f"nothing can match: the pattern needs {needed} events, and the window holds {size.amount}", size.span,
        f"write WITHIN {needed} EVENTS or more",
    )  # fmt: skip


def _least(node: nodes.Pattern) -> int:
    """The least number of events from the first marked to the last; SREMO's passed-over ends are not counted."""
    match node:
        case nodes.Event(output=output):
            return int(output)
        case nodes.Complement() | nodes.Empty() | nodes.Nothing():
            return 0
        case nodes.Union(parts=parts):
            return min(map(_least, parts))
        case nodes.Intersection(parts=parts):
            return max(map(_least, parts))
        case nodes.Iteration(operand=operand, least=least):
            return least * _least(operand)
    return sum(map(_least, visible(node)))


def _meant_as_name(condition: ex.Expression) -> str | None:
    """The advice for `"country" = 'FR'`, where SQL would read an attribute."""
    texts = (side.value for side in condition.children if isinstance(side, ex.Literal) and isinstance(side.value, str))
    first = next(texts, None)
    if not isinstance(condition, ex.Comparison) or first is None or not first.isidentifier():
        return None
    return f"quotes of both kinds make a text; an attribute is written {first}, or `{first}` if it is no plain name"
