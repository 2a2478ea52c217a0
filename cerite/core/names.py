"""Names as people write them: which need back-quotes, which are keywords.

Event types, variables and attributes are plain words where they can be, and stand in back-quotes where they hold
other characters or are keywords. A back-quote inside is doubled.
"""

from __future__ import annotations

import re

_KEYWORDS = """
    ALL AND ANY AS BY COMPLEMENT CONSUME CREATE EMPTY EVENT EVENTS FALSE FILTER FROM IN INTO IS LAST LIKE LIMIT MAX NAN
    NEXT NONE NOT NOTHING NULL OR PARTITION PER PERMUTE PROJECT RANGE SELECT SKIP SKIP_ANY SKIP_NEXT STREAM STRICT
    SUPPRESS TRUE WHERE WITHIN
"""
KEYWORDS = frozenset(_KEYWORDS.split())
_PLAIN = re.compile(r"[^\W\d]\w*\Z")


def quoted(name: str) -> str:
    """The name as it must be written.

    >>> quoted("price"), quoted("stock time"), quoted("from")
    ('price', '`stock time`', '`from`')
    """
    plain = _PLAIN.match(name) and name.upper() not in KEYWORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


def unquoted(text: str) -> str:
    """The name a written word stands for."""
    return text[1:-1].replace("``", "`") if text.startswith("`") else text
