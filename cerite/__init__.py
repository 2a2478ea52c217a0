"""Cerite: complex event recognition for Python and Spark.

>>> import cerite
>>> q = cerite.query("SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER y[price > 3] WITHIN 30 seconds")
>>> q.run([{"type": "SELL", "price": 3, "at": 0}, {"type": "BUY", "price": 4, "at": 9}], time="at").count()
1
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cerite.api.query import Query, query
    from cerite.api.result import Matches
    from cerite.api.stream import EventStream
    from cerite.core.errors import (
        ArgumentError,
        BudgetError,
        CeriteError,
        CeriteWarning,
        MissingExtraError,
        PatternError,
        QuerySyntaxError,
        SchemaError,
        SnapshotError,
        StreamError,
        TextWarning,
    )
    from cerite.core.match import Match
    from cerite.core.schema import Schema
    from cerite.data import open_events
    from cerite.language.builder import (
        Builder,
        absent,
        empty,
        event,
        nothing,
        permute,
        seconds,
        skip,
        skip_any,
        skip_next,
    )
    from cerite.language.ceql import parse_condition, parse_pattern, parse_schema
    from cerite.language.sremo import parse_sremo, sremo_text
    from cerite.language.terms import attr, var
    from cerite.language.wayeb import parse_wayeb
    from cerite.pattern import Pattern, QuerySpec
    from cerite.pattern.check import check
    from cerite.reference.semantics import matches

__version__ = "0.1.0"

__all__ = [
    "ArgumentError", "BudgetError", "Builder", "CeriteError", "CeriteWarning", "EventStream", "Match", "Matches",
    "MissingExtraError", "Pattern", "PatternError", "Query", "QuerySpec", "QuerySyntaxError", "Schema",
    "SchemaError", "SnapshotError", "StreamError", "TextWarning", "absent", "attr", "check", "empty", "event",
    "matches", "nothing", "open_events", "parse_condition", "parse_pattern", "parse_schema", "parse_sremo",
    "parse_wayeb", "permute", "query", "seconds", "skip", "skip_any", "skip_next", "sremo_text", "var",
]  # fmt: skip

_HOMES = {  # the imports above, for `__getattr__`
    "data": ("open_events",),
    "core.errors": (
        "ArgumentError", "BudgetError", "CeriteError", "CeriteWarning", "MissingExtraError", "PatternError",
        "QuerySyntaxError", "SchemaError", "SnapshotError", "StreamError", "TextWarning",
    ),
    "language.builder": (
        "Builder", "absent", "empty", "event", "nothing", "permute", "seconds", "skip", "skip_any", "skip_next",
    ),
    "language.ceql": ("parse_condition", "parse_pattern", "parse_schema"),
    "language.sremo": ("parse_sremo", "sremo_text"),
    "language.terms": ("attr", "var"),
    "language.wayeb": ("parse_wayeb",),
    "core.match": ("Match",),
    "pattern": ("Pattern", "QuerySpec"),
    "pattern.check": ("check",),
    "reference.semantics": ("matches",),
    "api.result": ("Matches",),
    "api.query": ("Query", "query"),
    "core.schema": ("Schema",),
    "api.stream": ("EventStream",),
}  # fmt: skip
_MODULES = {name: f"cerite.{module}" for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # for type checkers, a name that is not there is a mistake

    def __getattr__(name: str) -> Any:
        """A public name, imported when it is first used: `import cerite` alone costs nothing."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(_MODULES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
