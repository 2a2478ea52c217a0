"""What `check` says can never match has no match: random patterns and streams, by the judge."""

from __future__ import annotations

from hypothesis import assume, event, given
from hypothesis import strategies as st

from cerite.core.errors import CeriteError
from cerite.pattern import Pattern, QuerySpec, Size
from cerite.pattern.check import check
from cerite.pattern.never import reason
from tests import strategies as random
from tests.properties.agreement import Rows, judged
from tests.telling import often

PATTERNS = random.checked_patterns() | random.register_patterns(3)


@often(500)
@given(PATTERNS, random.streams(6, random.full_rows | random.rows), st.integers(2, 5))
def test_nothing_matches_what_can_never_match(pattern: Pattern, rows: Rows, size: int) -> None:
    query = QuerySpec(pattern, within=Size.events(size))
    try:
        check(query)
    except CeriteError:
        assume(False)
    why = reason(query)
    event("can never match" if why else "may match")
    if why is not None:
        assert judged(query, rows, "valuations") == []
