"""What can be wrong with an operator's parameters; what is wrong with a stream is a `StreamError` as everywhere."""

from __future__ import annotations

from cerite.errors import CeriteError


class DataflowError(CeriteError):
    """The parameters of an operator contradict each other or the definition they belong to."""


def check_multiple(name: str, value: int, delta: int, *, least: int) -> None:
    """Refuse a length of time that is no whole number of steps of δ, or less than `least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataflowError(f"{name} is {value!r}, not a whole number", hint="event time is counted in whole units")
    if value < least:
        raise DataflowError(f"{name} is {value}, but must be at least {least}")
    if value % delta:
        raise DataflowError(f"{name} is {value}, no multiple of δ = {delta}", hint="event time advances in steps of δ")
