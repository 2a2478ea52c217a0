"""The ways kernels are compiled: `nogil`, and cached on disk (`kernel_cache`) wherever a folder can be written.

Numba counts references to every array and every view of one, atomically, which takes longer than what most kernels do
with them (a count over registers took three times as long). A kernel that only reads and writes arrays of its caller
needs none of that; only a `maker`, which makes arrays of its own, does. The option that leaves it out is not one of
Numba's public ones: a Numba that refuses it compiles the same kernels, and slower ones, without.

A call hands over every array of every record, some hundred words: a helper that is called for every event costs more by
that than by what it does. So it is compiled into its caller: by Numba where there is one caller (`inlined`), by LLVM
where there are several (`embedded`), for which a large one need not be typed several times.

To inline a helper Numba copies its blocks, and with every single block all variables of the helper: a third of the time
that the large kernels take to compile. Here the copies share them (`inlining`), in a Numba that has the parts for it.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.compiler import Flags
from numba.core.registry import cpu_target

from cerite.core.kernel_cache import KernelCache

F = TypeVar("F", bound=Callable[..., object])
_CALLED_BY_KERNELS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def borrowing() -> dict[str, Any]:
    """The option that counts no references, if Numba takes it."""
    option = {"_nrt": False}
    try:
        cpu_target.options.parse_as_flags(Flags(), option)
    except Exception:  # KeyError as of today, and whatever a later Numba finds fit
        return {}
    return option


def inlining() -> dict[str, Any]:
    """The option that inlines helpers without copying all their variables once a block, if Numba copies them at all."""
    try:
        from numba.core import ir
        from numba.core.compiler import CompilerBase, DefaultPassBuilder
        from numba.core.compiler_machinery import register_pass
        from numba.core.untyped_passes import InlineInlinables
    except ImportError:  # a later Numba's parts may have other names
        return {}
    if hasattr(ir.Scope, "__deepcopy__"):
        return {}

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Inlining(InlineInlinables):  # type: ignore[misc]
        """Numba's own, while a copy of a block keeps the block's variables; it runs under Numba's lock."""

        _name = "inline_with_shared_scopes"

        def run_pass(self, state: Any) -> bool:
            ir.Scope.__deepcopy__ = lambda scope, _: scope
            try:
                return bool(super().run_pass(state))
            finally:
                del ir.Scope.__deepcopy__

    class Compiler(CompilerBase):  # type: ignore[misc]
        """Numba's passes in Numba's order."""

        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.passes = [(Inlining if each is InlineInlinables else each, why) for each, why in passes.passes]
            passes.finalize()
            return [passes]

    return {"pipeline_class": Compiler}


_BORROWS = borrowing()
_INLINES = inlining()


def kernel(function: F) -> F:
    """Compile a function that reads and writes the arrays it is given."""
    return _compiled(function, _BORROWS)


def maker(function: F) -> F:
    """Compile a function that makes arrays."""
    return _compiled(function, {})


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
    dispatcher: Any = njit(nogil=True, **options, **_INLINES)(function)
    if hasattr(dispatcher, "py_func"):  # and not the function itself, as NUMBA_DISABLE_JIT leaves it
        dispatcher._cache = KernelCache(dispatcher.py_func, options)
    return cast(F, dispatcher)
