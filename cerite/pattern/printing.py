"""Patterns and queries as CEQL text. Invariant: parsing the text gives an equal pattern or query."""

from __future__ import annotations

from cerite.core.names import quoted
from cerite.pattern import nodes
from cerite.pattern.nodes import ANY_TYPE, Pattern
from cerite.pattern.query import Consume, QuerySpec
from cerite.predicate import expression as ex
from cerite.predicate.printing import text as condition_text

# How tightly a node binds, loosest first.
_FILTER, _UNION, _INTERSECTION, _SEQUENCE, _CONCAT, _POSTFIX = range(6)
_DOTTED = (
    ex.Aggregate,
    ex.Arithmetic,
    ex.Call,
    ex.Interval,
    ex.Literal,
    ex.Moment,
    ex.Negative,
    ex.Reference,
)  # what ICDT's spelling takes
_COUNTS = {(1, None): "+", (0, None): "*", (0, 1): "?"}


def text(pattern: Pattern) -> str:
    """The pattern as it would be written in WHERE.

    >>> from cerite.pattern import Event, Iteration, Named, Sequence
    >>> print(text(Sequence((Event("SELL"), Iteration(Named(Event("BUY"), "b"))))))
    SELL ; (BUY AS b)+
    """
    return _render(pattern)[0]


def query_text(query: QuerySpec) -> str:
    """The query as CEQL, one clause per line."""
    lines = [] if query.schema is None else [str(query.schema)]
    strategy = "" if query.strategy is None else f"{query.strategy.value} "
    shown = ("*",) if query.items is None else query.items
    items = ", ".join(map(str, (*shown, *query.measures)))
    lines += [f"SELECT {strategy}{items}", f"FROM {', '.join(map(quoted, query.streams))}", f"WHERE {query.where}"]
    if query.partition:
        lines.append(f"PARTITION BY [{', '.join(map(quoted, query.partition))}]")
    if query.within is not None:
        lines.append(f"WITHIN {query.within}")
    if query.consume is not Consume.NONE:
        lines.append(f"CONSUME BY {query.consume.value}")
    if query.limit is not None:
        lines.append(f"LIMIT {query.limit}")
    if query.suppress is not None:
        lines.append(f"SUPPRESS {query.suppress}")
    return "\n".join(lines)


def event_text(event: nodes.Event) -> str:
    """An event with its inline condition: `BUY[price > 3]`."""
    name = ANY_TYPE if event.type is None else f"`{ANY_TYPE}`" if event.type == ANY_TYPE else quoted(event.type)
    return name if event.condition is None else f"{name}[{condition_text(event.condition)}]"


def on_text(on: nodes.On) -> str:
    """One condition of a filter: `x[price > 3]`."""
    return f"{quoted(on.variable)}[{condition_text(on.condition)}]"


def whole_text(condition: ex.Expression) -> str:
    """A condition on the whole pattern: `COUNT(y) >= 5`, in brackets unless it is one comparison with an aggregate."""
    inner = [node for each in condition.children for node in ex.walk(each)]
    plain = isinstance(condition, (ex.Comparison, ex.In, ex.InRange, ex.Like, ex.IsNull))
    plain = plain and all(isinstance(node, _DOTTED) for node in inner)
    plain = plain and any(isinstance(node, (ex.Aggregate, ex.Moment)) for node in inner)
    return condition_text(condition) if plain else f"[{condition_text(condition)}]"


def negated_text(pattern: Pattern) -> str:
    """What must not occur, as it stands in a sequence: `NOT (A ; B)`."""
    return f"NOT {_at(pattern, _CONCAT)}"


def _at(pattern: Pattern, level: int) -> str:
    rendered, own = _render(pattern)
    return rendered if own >= level else f"({rendered})"


def _render(node: Pattern) -> tuple[str, int]:
    match node:
        case nodes.Event():
            return _event(node), _POSTFIX
        case nodes.Filter(operand=operand, conditions=conditions):
            filters = " AND ".join(on_text(each) for each in conditions)
            return f"{_at(operand, _UNION)} FILTER {filters}", _FILTER
        case nodes.Having(operand=operand, conditions=conditions):
            return f"{_at(operand, _UNION)} FILTER {' AND '.join(map(whole_text, conditions))}", _FILTER
        case nodes.Union(parts=parts):
            return _joined(" OR ", parts, _UNION)
        case nodes.Intersection(parts=parts):
            return _joined(" AND ", parts, _INTERSECTION)
        case nodes.Sequence():
            return _sequence(node), _SEQUENCE
        case nodes.Concat(parts=parts):
            return _joined(" : ", parts, _CONCAT)
        case nodes.Named(operand=operand, variable=variable):
            return f"{_at(operand, _POSTFIX)} AS {quoted(variable)}", _POSTFIX
        case nodes.Iteration(operand=operand):
            apart = isinstance(operand, (nodes.Named, nodes.Iteration))  # `A+?` would look like a reluctant quantifier
            apart = apart or (isinstance(operand, nodes.Event) and operand != nodes.Event(operand.type))
            inner = f"({text(operand)})" if apart else _at(operand, _POSTFIX)
            return inner + _count(node), _POSTFIX
        case nodes.Window(operand=operand, size=size):
            return f"({text(operand)} WITHIN {size})", _POSTFIX
        case _:
            return _call(node), _POSTFIX


def _joined(operator: str, parts: tuple[Pattern, ...], level: int) -> tuple[str, int]:
    return operator.join(_at(part, level + 1) for part in parts), level


def _sequence(node: nodes.Sequence) -> str:
    pieces: list[str] = []
    for gap, part in zip((node.before, *node.absent), node.parts, strict=True):
        pieces += map(negated_text, gap)
        pieces.append(_at(part, _CONCAT))
    return " ; ".join((*pieces, *map(negated_text, node.after)))


def _event(event: nodes.Event) -> str:
    if event.output:
        stored = "" if event.register is None else f" INTO {quoted(event.register)}"
        return event_text(event) + stored
    return f"SKIP {event_text(event)}" + ("" if event.register is None else f" INTO {quoted(event.register)}")


def _count(node: nodes.Iteration) -> str:
    colon = ":" if node.contiguous else ""
    short = _COUNTS.get((node.least, node.most))
    if short:
        return colon + short
    if node.most == node.least:
        return f"{colon}{{{node.least}}}"
    return f"{colon}{{{node.least},{'' if node.most is None else node.most}}}"


def _call(node: Pattern) -> str:
    match node:
        case nodes.Empty():
            return "EMPTY"
        case nodes.Nothing():
            return "NOTHING"
        case nodes.Permute(parts=parts):
            return f"PERMUTE({', '.join(map(text, parts))})"
        case nodes.SkipAny(parts=parts):
            return f"SKIP_ANY({', '.join(map(text, parts))})"
        case nodes.SkipNext(parts=parts):
            return f"SKIP_NEXT({', '.join(map(text, parts))})"
        case nodes.Complement(operand=operand):
            return f"COMPLEMENT({text(operand)})"
        case nodes.Select(strategy=strategy, operand=operand):
            return f"{strategy.value}({text(operand)})"
        case nodes.Project(operand=operand, variables=variables):
            return f"PROJECT{{{', '.join(map(quoted, variables))}}}({text(operand)})"
    raise TypeError(f"not a pattern: {node!r}")
