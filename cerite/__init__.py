"""Cerite: complex event recognition for Python and Spark.

>>> import cerite
>>> q = cerite.query("SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER y[price > 3] WITHIN 30 seconds")
>>> q.run([{"type": "SELL", "price": 3, "at": 0}, {"type": "BUY", "price": 4, "at": 9}], time="at").count()
1
"""

from cerite.errors import CeriteError, PatternError, QuerySyntaxError, SchemaError, SnapshotError, StreamError
from cerite.language.builder import Builder, absent, empty, event, nothing, permute, skip, skip_any, skip_next
from cerite.language.ceql import parse_condition, parse_pattern, parse_schema
from cerite.language.sremo import parse_sremo, sremo_text
from cerite.language.terms import attr, var
from cerite.language.wayeb import parse_wayeb
from cerite.match import Match
from cerite.pattern import Pattern, Query
from cerite.pattern.check import check
from cerite.pattern.semantics import matches
from cerite.results import Matches
from cerite.run import RunnableQuery, query
from cerite.schema import Schema
from cerite.streaming import EventStream

__version__ = "0.1.0"

__all__ = [
    "Builder", "CeriteError", "EventStream", "Match", "Matches", "Pattern", "PatternError", "Query",
    "QuerySyntaxError", "RunnableQuery", "Schema", "SchemaError", "SnapshotError", "StreamError", "absent", "attr",
    "check", "empty", "event", "matches", "nothing", "parse_condition", "parse_pattern", "parse_schema",
    "parse_sremo", "parse_wayeb", "permute", "query", "skip", "skip_any", "skip_next", "sremo_text", "var",
]  # fmt: skip
