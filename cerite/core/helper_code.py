"""Helpers of kernels as LLVM code, without machine code of their own.

A helper (`jit.inner`, `jit.embedded`) is only called by kernels: it has no wrapper for Python. Numba links its LLVM
code into every caller and optimises it there, so machine code of the helper itself is never run, although producing it
takes a third of the time in which a query's kernels are compiled. Here it is not produced.

Invariant: a kernel contains all that it calls. So nothing of a helper is loaded into the process, there is no address
to call it at, and its entry in the kernel cache is its LLVM code alone. A helper may call itself, but helpers that call
each other in a circle would need addresses, and are refused.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler import CompileResult


class HelperLibrary(JITCodeLibrary):  # type: ignore[misc]
    """LLVM code to be linked into others."""

    def _optimize_final_module(self) -> None:
        """Only so far that callers have less to read: they optimise it again, with what is known there."""
        codegen = self._codegen
        try:
            passes, timings = codegen._module_pass_manager(
                loop_vectorize=codegen._loopvect, slp_vectorize=False, opt=codegen._opt_level, cost="cheap"
            )
        except (AttributeError, TypeError):  # before Numba 0.62 there is another interface
            super()._optimize_final_module()
        else:
            passes.run(self._final_module, timings)

    def _finalize_final_module(self) -> None:
        if any(variable.name.startswith(RuntimeLinker.PREFIX) for variable in self._final_module.global_variables):
            raise NotImplementedError(f"{self.name}: helpers that call each other in a circle; write a loop instead")
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """There is no object code."""
        return self.serialize_using_bitcode()


def entry_point(library: HelperLibrary, description: Any, environment: Any) -> Any:
    """What callers know a helper by: it cannot be called."""
    name = description.qualname.rpartition(".")[2]
    return _dynfunc.make_function(description.lookup_module(), name, f"LLVM code of {name}", 0, environment, (library,))


def rebuild(target_context: Any, reduced: tuple[Any, ...]) -> Any:
    """A compiled helper from its parts, in the order of Numba's `CompileResult._reduce`."""
    (name, _, bitcode), description, environment, signature, objectmode, lifted, annotation, reload_init, used = reduced
    for function in reload_init:
        function()
    library = HelperLibrary(target_context.codegen(), name)
    library._final_module = binding.parse_bitcode(bitcode)
    library._finalize_final_module()
    return CompileResult(
        target_context=target_context, typing_context=target_context.typing_context, library=library,
        environment=environment, entry_point=entry_point(library, description, environment), fndesc=description,
        type_annotation=annotation, signature=signature, objectmode=objectmode, lifted=lifted, typing_error=None,
        call_helper=None, metadata=None, reload_init=reload_init, referenced_envs=used,
    )  # fmt: skip
