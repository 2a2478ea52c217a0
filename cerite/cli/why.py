"""`cerite why`: what is explained, a match by its number or some rows."""

from __future__ import annotations

from typing import Any

from cerite.api.query import Query
from cerite.api.why.answer import Answer
from cerite.core.errors import CeriteError
from cerite.pattern.query import QuerySpec


def explained(
    query: QuerySpec, path: Any, options: dict[str, Any], *, rows: list[str] | None, match: int | None
) -> Answer:
    """Why a match is one, or, where rows are given, why they are one or none."""
    if rows is not None and match is not None:
        raise CeriteError("--match names a match, --rows events that should be one", hint="leave one of them out")
    runnable = Query(query)
    if rows is not None:
        return runnable.why_not(path, [_number(each) for each in rows], **options)
    wanted = 1 if match is None else match
    matches = runnable.run(path, **options).head(wanted)
    if len(matches) < wanted:
        how_many = f"only {len(matches):,} matches" if len(matches) > 1 else "only one match" if matches else "no match"
        raise CeriteError(
            f"there {'are' if len(matches) > 1 else 'is'} {how_many} to explain",
            hint="name rows that should be one: --rows 3,7,9",
        )
    return runnable.why(matches[-1], path, **options)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise CeriteError(f"--rows takes row numbers, not `{text}`", hint="--rows 3,7,9") from None
