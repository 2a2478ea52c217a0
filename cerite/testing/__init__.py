"""For tests of your own rules: events in a compact notation, assertions that say why they fail, and one call that
checks that a query has the same matches in one run, in a stream, out of order and in the judge.

>>> from cerite.testing import assert_agrees, assert_matches, events
>>> rule = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[price > 2] WITHIN 10 seconds"
>>> events("A@0 B(price=3)@5s C@9s")
[{'type': 'A', 'at': 0}, {'type': 'B', 'at': 5000, 'price': 3}, {'type': 'C', 'at': 9000}]
>>> assert_matches(rule, "A@0 B(price=3)@5s C@9s", [(0, 1)])
>>> assert_agrees(rule, "A@0 B(price=3)@5s C@9s")
1

Nothing here is needed to run a query, and nothing here is slow to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerite.core.lazy import lazy

if TYPE_CHECKING:
    from cerite.testing.agreement import arrivals, assert_agrees
    from cerite.testing.assertions import assert_matches, assert_no_match
    from cerite.testing.event_text import events, notation

__all__ = ["arrivals", "assert_agrees", "assert_matches", "assert_no_match", "events", "notation"]

_HOMES = {  # the imports above, for `__getattr__`
    "testing.agreement": ("arrivals", "assert_agrees"),
    "testing.assertions": ("assert_matches", "assert_no_match"),
    "testing.event_text": ("events", "notation"),
}

if not TYPE_CHECKING:
    __getattr__ = lazy(__name__, _HOMES)
