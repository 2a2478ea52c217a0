"""How kernels go through Numba's compiler, faster: with two passes replaced, in a Numba that has the parts for it.

*Inlining.* To inline a helper Numba copies its blocks, and with every single block all variables of the helper: a third
of the time that the large kernels take to compile. Here the copies share them.

*Garbage.* Numba makes millions of small objects, and Python looks through all of them, and through the program's own,
again and again: a fifth of the time. Compiling ends within seconds, so Python looks for garbage afterwards.

*Helpers.* Numba produces machine code of every function, even of helpers that only compiled functions call. Here a
helper ends as LLVM code (`helper_code` says why that is enough).

Invariant: kernels compute the same with and without these passes. A Numba that lacks a part compiles more slowly.
"""

from __future__ import annotations

import gc
from typing import Any

from numba import version_info

_OLDEST = (0, 62)  # the first Numba whose libraries are built as `helper_code` builds them
_PARTS = ("_finalize_dynamic_globals", "_verify_declare_only_symbols")


def replaced_passes() -> dict[str, Any]:
    """The option of Numba by which it compiles with our passes; none, if there are none for this Numba."""
    inlining, helpers = shared_scopes(), without_machine_code()
    if not inlining and not helpers:
        return {}
    from numba.core.compiler import CompilerBase, DefaultPassBuilder

    class Compiler(CompilerBase):  # type: ignore[misc]
        """Numba's passes in Numba's order; Python looks for no garbage meanwhile."""

        def compile_extra(self, function: Any) -> Any:
            collects = gc.isenabled()
            gc.disable()
            try:
                return super().compile_extra(function)
            finally:
                if collects:
                    gc.enable()

        def define_pipelines(self) -> list[Any]:
            replaced = {**inlining, **(helpers if self.state.flags.no_cpython_wrapper else {})}
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.passes = [(replaced.get(each, each), why) for each, why in passes.passes]
            passes.finalize()
            return [passes]

    return {"pipeline_class": Compiler}


def shared_scopes() -> dict[Any, Any]:
    """Numba's pass that inlines, and ours; nothing if Numba does not copy variables at all."""
    try:
        from numba.core import ir
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

    return {InlineInlinables: Inlining}


def without_machine_code() -> dict[Any, Any]:
    """Numba's pass that ends in machine code, and the one for helpers, which does not."""
    try:
        from numba.core.codegen import CPUCodeLibrary
        from numba.core.compiler_machinery import register_pass
        from numba.core.typed_passes import NativeLowering

        from cerite.core.helper_code import HelperLibrary, entry_point
    except ImportError:
        return {}
    if not all(hasattr(CPUCodeLibrary, part) for part in _PARTS) or version_info.short < _OLDEST:
        return {}

    @register_pass(mutates_CFG=True, analysis_only=False)
    class HelperLowering(NativeLowering):  # type: ignore[misc]
        """Numba's own, without its last step; callers find the LLVM code by an entry point without an address."""

        _name = "lower_helper"

        def run_pass(self, state: Any) -> bool:
            state.library = library = HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            super().run_pass(state)
            entry = entry_point(library, state.cr.fndesc, state.cr.env)
            state.targetctx.insert_user_function(entry, state.cr.fndesc, [library])
            state.reload_init.extend(getattr(library, "_reload_init", ()))
            state.cr = state.cr._replace(cfunc=entry)
            return True

    return {NativeLowering: HelperLowering}
