"""Everything Cerite raises and warns of. Every error is a `CeriteError`, with a message, a place and a hint.

>>> import cerite
>>> try:
...     cerite.query("SELECT * FROM S WHERE A FILTER B[price > 3]")
... except PatternError as error:
...     print(error.message)
the pattern before FILTER never binds `B`, so the filter would say nothing
"""

from cerite.core.errors import (
    ArgumentError,
    BudgetError,
    CeriteError,
    CeriteWarning,
    LateWarning,
    MissingExtraError,
    OrderError,
    PatternError,
    QuerySyntaxError,
    SchemaError,
    SnapshotError,
    StreamError,
    TextWarning,
)

__all__ = [
    "ArgumentError", "BudgetError", "CeriteError", "CeriteWarning", "LateWarning", "MissingExtraError", "OrderError",
    "PatternError", "QuerySyntaxError", "SchemaError", "SnapshotError", "StreamError", "TextWarning",
]  # fmt: skip
