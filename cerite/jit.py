"""The ways kernels are compiled: `nogil`, and cached on disk wherever a writable place for the cache exists.

Numba refuses `cache=True` at decoration time when neither the package's directory nor the user's cache directory can
be written (read-only containers, zipped Spark dependencies); the kernel is then compiled once per process.

Numba counts references to every array and every view of one, atomically, which takes longer than what most kernels do
with them (a count over registers took three times as long). A kernel that only reads and writes arrays of its caller
needs none of that; only a `maker`, which makes arrays of its own, does.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])
_BORROWS = {"_nrt": False}  # no references are counted
_CALLED_BY_KERNELS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: F) -> F:
    """Compile a function that reads and writes the arrays it is given."""
    return _compiled(function, _BORROWS)


def maker(function: F) -> F:
    """Compile a function that makes arrays."""
    return _compiled(function, {})


def inner(function: F) -> F:
    """Compile a helper that only kernels call: without the wrappers for Python, which take longest to compile."""
    return _compiled(function, _BORROWS | _CALLED_BY_KERNELS)


def inlined(function: F) -> F:
    """Compile a small helper of kernels into each of its callers."""
    return cast(F, njit(inline="always")(function))


def _compiled(function: F, options: dict[str, Any]) -> F:
    try:
        return cast(F, njit(nogil=True, cache=True, **options)(function))
    except RuntimeError:
        return cast(F, njit(nogil=True, **options)(function))
