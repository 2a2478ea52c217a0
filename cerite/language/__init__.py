"""The languages, all of which become `cerite.pattern`: CEQL, SREMO, Wayeb's expressions and the Python builder.

`cerite` itself has what most queries need; the rest is here: patterns, conditions and schemas from text, and the
builder's less common operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerite.core.lazy import lazy

if TYPE_CHECKING:
    from cerite.language.builder import Builder, empty, nothing, skip_any, skip_next
    from cerite.language.ceql import parse_condition, parse_pattern, parse_query, parse_schema
    from cerite.language.sremo import parse_sremo, sremo_text
    from cerite.language.wayeb import parse_wayeb

__all__ = [
    "Builder", "empty", "nothing", "parse_condition", "parse_pattern", "parse_query", "parse_schema", "parse_sremo",
    "parse_wayeb", "skip_any", "skip_next", "sremo_text",
]  # fmt: skip

_HOMES = {  # the imports above, for `__getattr__`
    "language.builder": ("Builder", "empty", "nothing", "skip_any", "skip_next"),
    "language.ceql": ("parse_condition", "parse_pattern", "parse_query", "parse_schema"),
    "language.sremo": ("parse_sremo", "sremo_text"),
    "language.wayeb": ("parse_wayeb",),
}

if not TYPE_CHECKING:  # to a type checker, a name that is not there must be an error
    __getattr__ = lazy(__name__, _HOMES)
