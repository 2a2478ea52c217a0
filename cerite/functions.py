"""The functions of conditions and measures on several events: `f.count(var.y) >= 5`, `f.avg(var.y.price)`.

As with `pyspark.sql.functions`, three have the names of Python's own, so import the module, not its names:

>>> from cerite import event, functions as f, var
>>> event("BUY").as_("y").plus().filter(f.count(var.y) >= 5, f.sum(var.y.price) > 100)
(BUY AS y)+ FILTER COUNT(y) >= 5 AND SUM(y.price) > 100
"""

from __future__ import annotations

from cerite.core.errors import ArgumentError
from cerite.language.terms import Term, Variable, variable_of
from cerite.predicate.expression import Aggregate, Moment, Reference, aggregate_of

__all__ = [
    "avg", "collect", "count", "count_distinct", "duration", "end_time", "first", "last", "max", "min", "start_time",
    "sum",
]  # fmt: skip


def count(of: Variable | Term | None = None) -> Term:
    """`COUNT(y)`; `COUNT(y.a)`, which skips NULL; without anything `COUNT(*)`, all events of a match.

    >>> from cerite.language.terms import var
    >>> count(var.y) >= 5, count(var.y.price), count()
    (Term(COUNT(y) >= 5), Term(COUNT(y.price)), Term(COUNT(*)))
    """
    if of is None:
        return Term(Aggregate("COUNT", None))
    return Term(Aggregate("COUNT", variable_of(of))) if isinstance(of, Variable) else _of("COUNT", of)


def count_distinct(of: Term) -> Term:
    """`COUNT(DISTINCT y.a)`."""
    return _of("COUNT", of, distinct=True)


def sum(of: Term) -> Term:  # noqa: A001 (its name in SQL and PySpark)
    """`SUM(y.a)`; of what is computed of each event, `sum(var.y.price * var.y.volume)`."""
    return _of("SUM", of)


def avg(of: Term) -> Term:
    """`AVG(y.a)`: the sum over the number, a float."""
    return _of("AVG", of)


def min(of: Term) -> Term:  # noqa: A001 (its name in SQL and PySpark)
    """`MIN(y.a)`."""
    return _of("MIN", of)


def max(of: Term) -> Term:  # noqa: A001 (its name in SQL and PySpark)
    """`MAX(y.a)`."""
    return _of("MAX", of)


def first(of: Term) -> Term:
    """`FIRST(y.a)`: the first that is not NULL."""
    return _of("FIRST", of)


def last(of: Term) -> Term:
    """`LAST(y.a)`: the last that is not NULL."""
    return _of("LAST", of)


def collect(of: Term) -> Term:
    """`COLLECT(y.a)`: the list of all values that are not NULL; a measure, not for conditions."""
    return _of("COLLECT", of)


def start_time() -> Term:
    """`START_TIME()`: when the match begins; a measure, not for conditions."""
    return Term(Moment("START_TIME"))


def end_time() -> Term:
    """`END_TIME()`: when the match ends; a measure, not for conditions."""
    return Term(Moment("END_TIME"))


def duration() -> Term:
    """`DURATION()`: how long the match takes; a measure, not for conditions."""
    return Term(Moment("DURATION"))


def _of(function: str, of: Term, *, distinct: bool = False) -> Term:
    read = of.expression if isinstance(of, Term) else None
    if read is not None and not isinstance(read, Reference) and not distinct:
        computed = aggregate_of(function, read)
        if computed is not None:
            return Term(computed)
    if not isinstance(read, Reference):
        raise ArgumentError(
            f"{function} takes an attribute of a variable, not {of!r}", hint="write var.y.price, of the variable y"
        )
    return Term(Aggregate(function, read.variable, read.name, distinct))
