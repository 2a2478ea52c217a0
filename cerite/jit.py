"""The one way kernels are compiled: `nogil`, and cached on disk wherever a writable place for the cache exists.

Numba refuses `cache=True` at decoration time when neither the package's directory nor the user's cache directory can
be written (read-only containers, zipped Spark dependencies); the kernel is then compiled once per process.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile `function` with Numba."""
    try:
        return cast(F, njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(F, njit(nogil=True)(function))


def inner(function: F) -> F:
    """Compile a helper that only kernels call: without the wrappers for Python, which take longest to compile."""
    options: Any = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    try:
        return cast(F, njit(cache=True, **options)(function))
    except RuntimeError:
        return cast(F, njit(**options)(function))


def inlined(function: F) -> F:
    """Compile a small helper of kernels into each of its callers."""
    return cast(F, njit(inline="always")(function))
