"""The ways kernels are compiled: `nogil`, and cached on disk (`kernel_cache`) wherever a folder can be written.

Numba counts references to every array and every view of one, atomically, which takes longer than what most kernels do
with them (a count over registers took three times as long). A kernel that only reads and writes arrays of its caller
needs none of that; only a `maker`, which makes arrays of its own, does. The option that leaves it out is not one of
Numba's public ones: a Numba that refuses it compiles the same kernels, and slower ones, without.

A call hands over every array of every record, some hundred words: a helper that is called for every event costs more by
that than by what it does. So it is compiled into its caller: by Numba where there is one caller (`inlined`), by LLVM
where there are several (`embedded`), for which a large one need not be typed several times.

`pipeline` keeps the cost of compiling down: helpers end as LLVM code, and inlining copies no more than it must.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.compiler import Flags
from numba.core.registry import cpu_target

from cerite.core.kernel_cache import KernelCache
from cerite.core.pipeline import replaced_passes

F = TypeVar("F", bound=Callable[..., object])
_CALLED_FROM_PYTHON = {"no_cfunc_wrapper": True}  # and not from C
_CALLED_BY_KERNELS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def borrowing() -> dict[str, Any]:
    """The option that counts no references, if Numba takes it."""
    option = {"_nrt": False}
    try:
        cpu_target.options.parse_as_flags(Flags(), option)
    except Exception:  # KeyError as of today, and whatever a later Numba finds fit
        return {}
    return option


_BORROWS = borrowing()
_PASSES = replaced_passes()


def kernel(function: F) -> F:
    """Compile a function that reads and writes the arrays it is given."""
    return _compiled(function, _BORROWS | _CALLED_FROM_PYTHON)


def maker(function: F) -> F:
    """Compile a function that makes arrays."""
    return _compiled(function, _CALLED_FROM_PYTHON)


def inner(function: F) -> F:
    """Compile a helper that only kernels call: without the wrappers for Python, which take longest to compile."""
    return _compiled(function, _BORROWS | _CALLED_BY_KERNELS)


def embedded(function: F) -> F:
    """Compile a helper of kernels once, and let LLVM put its code where it is called: arguments cost nothing there."""
    return _compiled(function, _BORROWS | _CALLED_BY_KERNELS | {"forceinline": True})


def inlined(function: F) -> F:
    """Compile a small helper of kernels into each of its callers."""
    return cast(F, njit(inline="always")(function))


def _compiled(function: F, options: dict[str, Any]) -> F:
    dispatcher: Any = njit(nogil=True, **options, **_PASSES)(function)
    if hasattr(dispatcher, "py_func"):  # and not the function itself, as NUMBA_DISABLE_JIT leaves it
        dispatcher._cache = cache = KernelCache(dispatcher.py_func, options)
        if hasattr(dispatcher, "_compiler"):
            dispatcher._compiler.compile = cache.giving_up(dispatcher._compiler.compile)
    return cast(F, dispatcher)
