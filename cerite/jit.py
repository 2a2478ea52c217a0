"""The one way kernels are compiled: `nogil`, and cached on disk wherever a writable place for the cache exists.

Numba refuses `cache=True` at decoration time when neither the package's directory nor the user's cache directory can
be written (read-only containers, zipped Spark dependencies); the kernel is then compiled once per process.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile `function` with Numba."""
    try:
        return cast(F, njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(F, njit(nogil=True)(function))


def inlined(function: F) -> F:
    """Compile a small helper of kernels into each of its callers."""
    return cast(F, njit(inline="always")(function))
