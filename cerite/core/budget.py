"""What one query may take: how many deterministic states, and how much memory for counting.

Determinising a pattern may need exponentially many states (`(A OR B)* ; A ; (A OR B){20}` has to remember which of the
last twenty events were an A), counting in a window a number for every pair of states, and a sum over events that may be
taken or left (`A+ AS x FILTER SUM(x.v) > 9`) an entry for every value it can have. `engine.outlook` warns of it
before anything runs, for `cerite check`; which states occur comes to light while events are read, and what exceeds the
budget is then refused, with the number, before the memory is allocated.

The environment variables `CERITE_STATES` and `CERITE_MEMORY` (bytes, or with a unit: `512 MiB`, `4GB`) set it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NoReturn

from cerite.core.errors import BudgetError, CeriteError, listed

STATES = 100_000
MEMORY = 1 << 30
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def most_states() -> int:
    """How many deterministic states a query may have."""
    return _setting("CERITE_STATES", STATES)


def check_states(states: int, most: int) -> None:
    """Refuse more deterministic states than that."""
    if states > most:
        refuse_states(most, " on these events")


def refuse_states(most: int, where: str = "") -> NoReturn:
    """More deterministic states than that cannot be had."""
    raise BudgetError(
        f"this query has more than {most:,} deterministic states{where}",
        hint="repeat less often before or after what may be any event, give a shorter window, or allow more "
        "states with the environment variable CERITE_STATES",
    )


def check_counting(states: int, needed: int) -> None:
    """Refuse to count with tables of more bytes than the budget has."""
    most = _setting("CERITE_MEMORY", MEMORY)
    if needed > most:
        raise BudgetError(
            f"counting with {states:,} deterministic states in a window takes {_shown(needed)}, more than the "
            f"{_shown(most)} it may take",
            hint="count without a window or with fewer repetitions, run the query with LIMIT instead of counting, or "
            "allow more memory with the environment variable CERITE_MEMORY",
        )


def check_sums(sums: Sequence[str], entries: int, needed: int, advice: str) -> None:
    """Refuse sums over every choice of events once they take more bytes than the budget has."""
    most = _setting("CERITE_MEMORY", MEMORY)
    if needed > most:
        raise BudgetError(
            f"there are {entries:,} different values of {listed(sums)} already, since events may be taken or left, and "
            f"room for more would take {_shown(needed)}, more than the {_shown(most)} it may take",
            hint=f"{advice}; or allow more memory with the environment variable CERITE_MEMORY",
        )


def counting_bytes(slots: int, capacity: int) -> int:
    """What the tables of counting in a window take: a number for every pair of deterministic states."""
    return 8 * (slots + 2) * capacity * capacity


def counting_note(states: int) -> str | None:
    """What counting with so many deterministic states in a window takes, if that is more than it may."""
    needed = counting_bytes(1, 1 << (states - 1).bit_length())
    most = _setting("CERITE_MEMORY", MEMORY)
    return None if needed <= most else f"it takes {_shown(needed)}, more than the {_shown(most)} it may take"


def _setting(name: str, default: int) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    read = re.fullmatch(r"([0-9][0-9_]*)\s*([A-Za-z]*)", text)
    if read is None or read[2].upper() not in _UNITS:
        raise CeriteError(f"{name} is {text!r}, which is not a number", hint="write `2000000` or, of memory, `2 GiB`")
    return int(read[1]) * _UNITS[read[2].upper()]


def _shown(size: int) -> str:
    """A number of bytes for people.

    >>> _shown(3 << 30), _shown(5 << 19)
    ('3.0 GiB', '2.5 MiB')
    """
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.1f} MiB"
