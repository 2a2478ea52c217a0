"""Wayeb's pattern files: `parse_wayeb` (the SRT paper's benchmark, section 7 of the report; Wayeb's own `.sre` files).

    #(;(^(IsEventTypePredicate(SELL),EQStr(name,INTC))["x"], … )){window:500}{windowType:time}

The meaning is the report's, even where Wayeb's code falls short of it: `;` and `*` are contiguous, `*` is zero or more
(definition 15) and repeats a list as a whole, `#` and `@` put their gap between the parts of the sequence or iteration
that they apply to and do nothing to anything else (definitions 44 and 45), `!` marks nothing (corollary 43),
both ends belong to the window (definition 39), and `partitionBy` partitions. Every event that a predicate accepts is
marked; `["x"]` stores it in the register x, which is a variable like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from lark import Tree

from cerite.core.errors import CeriteError, PatternError, QuerySyntaxError, Span, suggestion
from cerite.language.conditions import name_of, signed_of
from cerite.language.parsing import Node, parse, placed, span_of, subtree
from cerite.language.wayeb_sentences import event_of, negated, predicate_of, register_of
from cerite.pattern import nodes
from cerite.pattern.nodes import Pattern, walk
from cerite.pattern.query import QuerySpec
from cerite.pattern.variables import nullable
from cerite.predicate.expression import And, Expression, Or, references

_SHAPE = "operators come first: ;(P,Q) +(P,Q) *(P) #(;(P,Q)), and {window:500}{windowType:time} last"
_SETTINGS = ("order", "partitionBy", "window", "windowType")


def parse_wayeb(text: str) -> QuerySpec:
    """The query of a pattern file; a file of several patterns asks for the matches of any of them.

    >>> print(parse_wayeb('#(;(IsEventTypePredicate(A)["x"],GTAttr(price,"x"))){partitionBy:name}{window:500}'))
    SELECT *
    FROM S
    WHERE A INTO x ; _[price > x.price]
    PARTITION BY [name]
    WITHIN 500 EVENTS
    """
    queries = parse_wayeb_patterns(text)
    if len(queries) == 1:
        return queries[0]
    for query in queries:
        if query.partition != queries[0].partition:
            raise PatternError(
                "the patterns of this file are partitioned differently", source=text, span=query.clauses["where"],
                hint="give each a file of its own",
            )  # fmt: skip
    same = len({query.within for query in queries}) == 1
    parts = tuple(
        each.where if same or each.within is None else nodes.Window(each.where, each.within) for each in queries
    )
    return replace(queries[0], where=nodes.Union(parts), within=queries[0].within if same else None)


def parse_wayeb_patterns(text: str) -> tuple[QuerySpec, ...]:
    """Every pattern of the file, separated by `&`, as a query of its own."""
    try:
        tree = parse(text, "wayeb", ("wayeb",), "wayeb")
        return tuple(_query(subtree(each), text) for each in tree.children)
    except CeriteError as error:
        raise _relocated(error, text).at(text) from None


def _relocated(error: CeriteError, text: str) -> CeriteError:
    """The error with hints about Wayeb's syntax; the parser's own are about CEQL."""
    if error.message.startswith("the query is empty"):
        return QuerySyntaxError("the file is empty", hint=_SHAPE)
    if error.span is not None and error.message.startswith(("unexpected", "the query ends")):
        if text.startswith("~", error.span.start):
            error.hint = "declarations, ~(…), serve Wayeb's forecasting and say nothing about matches: leave them out"
        elif text[: error.span.start].rstrip().endswith("["):
            error.hint = 'a register stands in double quotes: ["x"]'
        elif "`,`" not in (error.hint or ""):
            error.hint = _SHAPE
    return error


# ---------------------------------------------------------------- settings
def _query(node: Node, text: str) -> QuerySpec:
    formula, *settings = map(subtree, node.children)
    where = _pattern(formula)
    _check_registers(where)
    if isinstance(where, nodes.SkipAny):  # around the whole pattern, what is skipped at either end belongs to no match
        where = placed(_with_gaps(_one(where.parts)), formula)
    given: dict[str, Node] = {}
    for setting in settings:
        key, value = map(subtree, setting.children)
        if name_of(key) in given:
            raise QuerySyntaxError(f"`{name_of(key)}` is set twice", span=span_of(key))
        if name_of(key) not in _SETTINGS:
            raise QuerySyntaxError(
                f"no setting is called `{name_of(key)}`", span=span_of(key),
                hint=suggestion(name_of(key), _SETTINGS) or f"the settings are {', '.join(_SETTINGS)}",
            )  # fmt: skip
        given[name_of(key)] = value
    if "order" in given:  # of the Markov chain, for forecasting
        _whole(given["order"], "order")
    return QuerySpec(
        where,
        partition=(_chosen(given["partitionBy"], "partitionBy"),) if "partitionBy" in given else (),
        within=_window(given),
        source=text,
        clauses={"where": cast(Span, span_of(formula)), **_spans(given, partition="partitionBy", within="window")},
    )


def _check_registers(pattern: Pattern) -> None:
    """Refuse to read what nothing stores; whether it is stored in time is up to `cerite.pattern.check`."""
    events = [each for each in walk(pattern) if isinstance(each, nodes.Event)]
    stored = {each.register for each in events if each.register is not None}
    for event in events:
        for reference in references(event.condition) if event.condition is not None else ():
            if reference.variable not in stored:
                raise PatternError(
                    f"no event is stored in the register `{reference.variable}`", span=reference.span,
                    hint=suggestion(reference.variable, stored)
                    or f'store one: write ["{reference.variable}"] after its predicate',
                )  # fmt: skip


def _spans(given: dict[str, Node], **clauses: str) -> dict[str, Span]:
    return {clause: cast(Span, span_of(given[key])) for clause, key in clauses.items() if key in given}


def _window(given: dict[str, Node]) -> nodes.Size | None:
    """The window: by default it counts events; a time window is in the unit of the event time, milliseconds for us."""
    if "window" not in given:
        if "windowType" in given:
            raise QuerySyntaxError(
                "there is a windowType but no window", span=span_of(given["windowType"]), hint="write {window:500}"
            )
        return None
    node = given["window"]
    amount = _whole(node, "window")
    if amount == 0:
        raise QuerySyntaxError("a window cannot be 0 long", span=span_of(node), hint="leave it out to have none")
    kind = _chosen(given["windowType"], "windowType") if "windowType" in given else "count"
    if kind not in ("time", "count"):
        raise QuerySyntaxError(
            f"no type of window is called `{kind}`", span=span_of(given["windowType"]), hint="write time or count"
        )
    return nodes.Size(amount, "milliseconds" if kind == "time" else "events", span=span_of(node))


def _whole(node: Node, key: str) -> int:
    value = signed_of(node) if node.data == "constant" else None
    if isinstance(value, int) and value >= 0:
        return value
    hint = f"write {{{key}:500}}"
    if node.data == "name" and name_of(node) == "TIMESTAMP":
        hint = f"TIMESTAMP is where the benchmark's scripts put the window: {hint}"
    raise QuerySyntaxError(f"{key} takes a whole number", span=span_of(node), hint=hint)


def _chosen(node: Node, key: str) -> str:
    if node.data != "name":
        raise QuerySyntaxError(f"{key} takes a name", span=span_of(node))
    return name_of(node)


# ---------------------------------------------------------------- formulas
def _pattern(node: Node) -> Pattern:
    formula = _formula(node)
    return event_of(formula) if isinstance(formula, Expression) else formula


def _formula(node: Node) -> Pattern | Expression:
    """A sentence where the formula is about one event, else a pattern."""
    result: Any = _FORMULAS[str(node.data)](node)
    formula: Pattern | Expression = placed(result, node)
    return formula


def _predicate(node: Node) -> Pattern | Expression:
    return nodes.Empty() if name_of(node.children[0]) == "EpsilonPredicate" else predicate_of(node)


def _stored(node: Node) -> Pattern:
    operand, register = map(subtree, node.children)
    sentence = _formula(operand)
    if not isinstance(sentence, Expression):
        raise PatternError(
            "a register holds one event, and this is a pattern", span=span_of(register),
            hint='write ["x"] after the predicate of the event to be stored',
        )  # fmt: skip
    return event_of(sentence, register_of(register))


def _negation(node: Node) -> Expression:
    sentence = _formula(subtree(node.children[1]))
    if not isinstance(sentence, Expression):
        raise PatternError(
            "`-` negates a condition on one event, and this is a pattern", span=span_of(node), hint="write !(…)"
        )
    return negated(sentence)


def _operation(node: Node) -> Pattern | Expression:
    operator, operands = str(node.children[0]), subtree(node.children[1])
    children = [each for each in operands.children if isinstance(each, Tree)]
    least = 2 if operator in ";+^|" else 1
    if len(children) < least:
        raise QuerySyntaxError(
            f"`{operator}` takes {'two or more operands' if least == 2 else 'an operand'}", span=span_of(node),
            hint=f"write {operator}({'P,Q' if least == 2 else 'P'})",
        )  # fmt: skip
    formulas = tuple(_formula(each) for each in children)
    if operator in "^|":
        sentences = tuple(each for each in formulas if isinstance(each, Expression))
        if len(sentences) == len(formulas):
            return And(sentences) if operator == "^" else Or(sentences)
        if operator == "^":
            raise PatternError(
                "`^` joins conditions on one event, and one of these is a pattern", span=span_of(node),
                hint='predicates go inside, a register after it: ^(P,Q)["x"]',
            )  # fmt: skip
    parts = tuple(event_of(each) if isinstance(each, Expression) else each for each in formulas)
    return _REGULAR[operator](parts)


def _one(parts: tuple[Pattern, ...]) -> Pattern:
    """The one pattern that an operator takes: a list is its sequence."""
    return parts[0] if len(parts) == 1 else nodes.Concat(parts)


def _skip_any(parts: tuple[Pattern, ...]) -> Pattern:
    """Where the first and last parts need an event, ⟲ is CEQL's `;`; else it may begin or end with what it skips."""
    match _one(parts):
        case nodes.Concat(parts=inner) if nullable(inner[0]) or nullable(inner[-1]):
            return nodes.SkipAny(inner)
        case nodes.Iteration(operand=operand, contiguous=True) as iteration if nullable(operand):
            return nodes.SkipAny((iteration,))
        case other:
            return _with_gaps(other)


def _with_gaps(pattern: Pattern) -> Pattern:
    """The sequence or iteration with gaps, where it was contiguous; anything else as it is."""
    match pattern:
        case nodes.Concat(parts=parts):
            return nodes.Sequence(parts)
        case nodes.Iteration():
            return replace(pattern, contiguous=False)
        case _:
            return pattern


def _skip_next(parts: tuple[Pattern, ...]) -> Pattern:
    match _one(parts):
        case nodes.Concat(parts=inner):
            return nodes.SkipNext(inner)
        case nodes.Iteration(contiguous=True) as iteration:
            return nodes.SkipNext((iteration,))
        case other:
            return other


_REGULAR: dict[str, Callable[[tuple[Pattern, ...]], Pattern]] = {
    ";": nodes.Concat,
    "+": nodes.Union,
    "|": nodes.Union,
    "*": lambda parts: nodes.Iteration(_one(parts), 0, None, contiguous=True),
    "!": lambda parts: nodes.Complement(_one(parts)),
    "#": _skip_any,
    "@": _skip_next,
}
_FORMULAS: dict[str, Callable[[Node], Pattern | Expression]] = {
    "predicate": _predicate,
    "stored": _stored,
    "negation": _negation,
    "operation": _operation,
}
