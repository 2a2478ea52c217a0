"""Why something is not done in a certain way, in place of the result that it would have: a decision, not an error."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rejected:
    """Why not; the reason is shown in explanations."""

    reason: str
