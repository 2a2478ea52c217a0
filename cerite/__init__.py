"""Cerite: complex event recognition for Python and Spark.

>>> import cerite
>>> q = cerite.query("SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER y[price > 3] WITHIN 30 seconds")
>>> q.run([{"type": "SELL", "price": 3, "at": 0}, {"type": "BUY", "price": 4, "at": 9}], time="at").count()
1

Everything else is in a package of its own: `cerite.functions` has the aggregates, `cerite.spark` runs queries on Spark,
`cerite.datasets` has streams to try things on, `cerite.errors` has all errors, `cerite.language` parses text and has
the builder's less common operators, `cerite.pattern` is the algebra that every query becomes, `cerite.dataflow` has
dataflow operators in plain Python, and `cerite.reference` is the judge, slow and exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerite.core.lazy import lazy

if TYPE_CHECKING:
    from cerite import dataflow as dataflow
    from cerite import datasets as datasets
    from cerite import errors as errors
    from cerite import functions as functions
    from cerite import language as language
    from cerite import pattern as pattern
    from cerite import reference as reference
    from cerite import spark as spark
    from cerite.api.query import Query, check, query
    from cerite.api.result import Matches
    from cerite.api.stream import EventStream
    from cerite.core.errors import (
        CeriteError,
        CeriteWarning,
        PatternError,
        QuerySyntaxError,
        SchemaError,
        StreamError,
    )
    from cerite.core.match import Match
    from cerite.core.schema import Schema
    from cerite.data import open_events
    from cerite.language.builder import Builder, absent, event, permute, seconds, skip
    from cerite.language.terms import attr, var

__version__ = "0.1.0"

__all__ = [
    "Builder", "CeriteError", "CeriteWarning", "EventStream", "Match", "Matches", "PatternError", "Query",
    "QuerySyntaxError", "Schema", "SchemaError", "StreamError", "absent", "attr", "check", "event", "open_events",
    "permute", "query", "seconds", "skip", "var",
]  # fmt: skip

_HOMES = {  # the imports above, for `__getattr__`
    "api.query": ("Query", "check", "query"),
    "api.result": ("Matches",),
    "api.stream": ("EventStream",),
    "core.errors": (
        "CeriteError", "CeriteWarning", "PatternError", "QuerySyntaxError", "SchemaError", "StreamError",
    ),
    "core.match": ("Match",),
    "core.schema": ("Schema",),
    "data": ("open_events",),
    "language.builder": ("Builder", "absent", "event", "permute", "seconds", "skip"),
    "language.terms": ("attr", "var"),
}  # fmt: skip
_ROOMS = ("dataflow", "datasets", "errors", "functions", "language", "pattern", "reference", "spark")

if not TYPE_CHECKING:  # to a type checker, a name that is not there must be an error
    __getattr__ = lazy(__name__, _HOMES, _ROOMS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
