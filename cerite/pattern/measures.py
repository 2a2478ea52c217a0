"""Measures: what SELECT computes for every match, what each is called, and which must be refused.

The match is projected to the variables that SELECT mentions in any form, then measured (docs/semantics.md, *Measures*).

Invariant: a measure that passes has one value for every match: `x.price` only where x holds exactly one event.
"""

from __future__ import annotations

from cerite.core.errors import PatternError, listed, suggestion
from cerite.core.names import quoted
from cerite.pattern.query import Measure, QuerySpec
from cerite.pattern.variables import bound, counts
from cerite.predicate import expression as ex

_TRUTHS = (ex.And, ex.Or, ex.Not, ex.Comparison, ex.In, ex.InRange, ex.Like, ex.IsNull, ex.IsTrue)
_ALWAYS = ("match", "start_time", "end_time", "start", "end")  # columns that a result may have besides measures
_ENDS = {"start_time": ex.Moment("START_TIME"), "end_time": ex.Moment("END_TIME")}


def default_name(expression: ex.Expression) -> str:
    """The name of a measure without AS: that of its attribute, else the measure as it is written.

    >>> [default_name(each) for each in (ex.Reference("x", "price"), ex.Moment("DURATION"), ex.Aggregate("COUNT", "y"))]
    ['price', 'duration', 'COUNT(y)']
    """
    if isinstance(expression, ex.Reference):
        return expression.name
    return expression.function.lower() if isinstance(expression, ex.Moment) else str(expression)


def measured(query: QuerySpec) -> tuple[Measure, ...]:
    """The measures that are columns of their own: a result has its ends' times and its partition's values anyway."""
    return tuple(each for each in query.measures if not _is_there(each, query.partition))


def _is_there(measure: Measure, partition: tuple[str, ...]) -> bool:
    expression = measure.expression
    if isinstance(expression, ex.Reference):
        return measure.name == expression.name and expression.name in partition
    return _ENDS.get(measure.name) == expression


def check_measures(query: QuerySpec) -> None:
    """Refuse measures without a value, and two columns with one name."""
    for measure in query.measures:
        _check(measure, query)
    taken = {name.casefold(): name for name in (*_ALWAYS, *query.partition)}
    shown = query.items if query.items is not None else ()
    taken |= {item.variable.casefold(): item.variable for item in shown}
    if query.items is None:
        taken |= {name.casefold(): name for name in bound(query.where)}
    for measure in measured(query):
        other = taken.get(measure.name.casefold())
        if other is not None:
            raise PatternError(
                f"the result has a column `{other}` already", span=measure.span,
                hint=f"give the measure another name: `{measure.expression} AS {quoted(measure.name + '_')}`",
            )  # fmt: skip
        taken[measure.name.casefold()] = measure.name


def _check(measure: Measure, query: QuerySpec) -> None:
    expression = measure.expression
    if isinstance(expression, _TRUTHS):
        raise PatternError(
            f"`{expression}` is a condition, and a measure is a value", span=expression.span or measure.span,
            hint="put conditions after FILTER",
        )  # fmt: skip
    if ex.is_constant(expression):
        raise PatternError(f"`{expression}` is the same for every match", span=measure.span, hint="leave it out")
    known = bound(query.where)
    for node in ex.walk(expression):
        if isinstance(node, ex.Attribute):
            example = min(known, key=lambda name: (name.isupper(), name), default="x")
            raise PatternError(
                f"which event is `{node.name}` read from?", span=node.span or measure.span,
                hint=f"name the variable: `{quoted(example)}.{quoted(node.name)}`",
            )  # fmt: skip
        if isinstance(node, (ex.Reference, ex.Aggregate)) and node.variable is not None and node.variable not in known:
            raise PatternError(
                f"SELECT measures `{node.variable}`, which the pattern never binds", span=node.span or measure.span,
                hint=suggestion(node.variable, known) or f"it binds {listed(known)}",
            )  # fmt: skip
        if isinstance(node, ex.Reference):
            _check_single(node, measure, query)
        if isinstance(node, ex.Aggregate) and node.function == "COLLECT" and node is not expression:
            raise PatternError(
                f"`{node}` is a list, which cannot be computed with", span=node.span or measure.span,
                hint="SUM, AVG, MIN and MAX are single values",
            )  # fmt: skip


def _check_single(node: ex.Reference, measure: Measure, query: QuerySpec) -> None:
    least, most = counts(query.where, node.variable)
    if (least, most) != (1, 1):
        may = "may hold no event" if most <= 1 else "may hold several events"
        text = f"{quoted(node.variable)}.{quoted(node.name)}"
        raise PatternError(
            f"`{text}` needs a variable that holds exactly one event, and `{node.variable}` {may}",
            span=node.span or measure.span,
            hint=f"say which value is meant: FIRST({text}), LAST({text}), or MIN, MAX, SUM, AVG or COLLECT of them",
        )
