"""The two key-by functions that DEBS 2024, section 2.1, names: f_K° puts all tuples together, f_K* only equal ones.

The paper hashes; here the key is the value itself, so that no two different tuples ever share one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Set
from typing import Any

from cerite.dataflow.streams import StreamTuple
from cerite.errors import StreamError

KeyFunction = Callable[[StreamTuple], Hashable]


def same_key(t: StreamTuple) -> Hashable:
    """f_K°: one key for all tuples."""
    return 0


def own_key(t: StreamTuple) -> Hashable:
    """f_K*: two tuples share a key exactly if they are equal, t₁.τ = t₂.τ and t₁.φ = t₂.φ.

    >>> own_key(StreamTuple(3, {"v": [1]})) == own_key(StreamTuple(3, {"v": [1.0]}))
    True
    >>> own_key(StreamTuple(3, {"v": 1})) == own_key(StreamTuple(3, {"v": True}))
    False
    """
    return t.time, _frozen(t.payload)


def _frozen(value: Any) -> Hashable:
    """The value in hashable form: numbers by value, but a truth value is no number, and NaN is the same as NaN."""
    if isinstance(value, Mapping):
        return dict, frozenset((name, _frozen(each)) for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return list, tuple(map(_frozen, value))
    if isinstance(value, Set):
        return set, frozenset(map(_frozen, value))
    if isinstance(value, bool) or (isinstance(value, float) and math.isnan(value)):
        return type(value), str(value)
    try:
        hash(value)
    except TypeError:
        raise StreamError(
            f"payloads that hold {type(value).__name__} cannot be compared", hint="give a key function of your own"
        ) from None
    return value  # type: ignore[no-any-return]
