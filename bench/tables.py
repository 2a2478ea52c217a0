"""Figures as text, and tables of them in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def million(rate: float | None) -> str:
    """A rate in millions.

    >>> million(2_340_000.0), million(12_345.0), million(None)
    ('2.3', '0.012', '')
    """
    if rate is None:
        return ""
    return f"{rate / 1e6:.1f}" if rate >= 1e6 else f"{rate / 1e6:.2g}"


def whole(number: int | None) -> str:
    """A number with its thousands separated."""
    return "" if number is None else f"{number:,}"


def big(digits: str | None) -> str:
    """A number that may be very large, or known only roughly.

    >>> big("1234"), big(str(10**15)), big("2.2e12"), big(None)
    ('1,234', '1.0e15', '2.2e12', '')
    """
    if digits is None or not digits.isdigit():
        return digits or ""
    if int(digits) < 10**12:
        return f"{int(digits):,}"
    return f"{int(digits) / 10 ** (len(digits) - 1):.1f}e{len(digits) - 1}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table without the columns that are empty; all but the first are aligned to the right.

    >>> print(table(("Query", "Count", "Note"), [("S3", "33.3", ""), ("S6", "", "")]))
    | Query | Count |
    | --- | ---: |
    | S3 | 33.3 |
    | S6 |  |
    """
    cells = list(rows)
    used = [k for k in range(len(heads)) if any(row[k] for row in cells)]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *cells]
    return "\n".join("| " + " | ".join(line[k] for k in used) + " |" for line in lines)
