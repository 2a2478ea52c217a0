"""Machine code of kernels, cached on disk, never stale.

Numba's own cache names an entry by the source of the file that a function is written in: it does not notice that a
function or a constant of *another* file changed, and kernels call each other across many files, so after an update old
machine code could run over new layouts. Two processes that compile different signatures at once may even read each
other's code. Here an entry is named by everything that its machine code follows from:

- the versions of Python, NumPy, Numba and llvmlite, Numba's settings and the processor with its features (a folder);
- the bytecode, options and constants of the kernel, and of all that it calls, whatever file they are in;
- the types of its arguments, with the fields of records in their order.

So an entry is right or absent. It is written beside its place, renamed, and begins with a checksum of the rest: what is
half written or damaged is compiled anew. A disk that is full or read-only costs the compilation, never the result.

Before the first compilation of a process that takes more than a second, one line on stderr says so (`CERITE_QUIET=1`
leaves it out). Numba compiles in one thread, under a lock; and most of a query's time is one kernel with all that it
calls, which several processes could not share. Those that need the same kernel at once take turns (`turns`).

Entries lie below `NUMBA_CACHE_DIR` if that is set, else beside Cerite's sources, else in the user's cache folder.
Entries of code that has changed go as new ones are written; of the folders, the last used ones stay.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import EnumMeta
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.misc.appdirs import AppDirs

from cerite.core.turns import Turn, take_turn

_FORMAT = "2"  # of entries
_SUFFIX = ".kernel"
_LLVM_CODE = "bitcode"  # as Numba calls an entry without machine code
_DIGEST = 16  # bytes
_MOST_FOLDERS = 4  # of versions and processors, by last use
_PACKAGE = Path(__file__).resolve().parents[1]
_OWN = __name__.partition(".")[0]  # where kernels call into: changes elsewhere do not change machine code
_SECONDS = 0.4e-3  # that a byte of bytecode takes to compile, on a core of 2024
_WORTH_SAYING = 1.0  # seconds


class KernelCache(_Cache):  # type: ignore[misc]
    """The entries of one kernel: what Numba asks before it compiles and tells afterwards."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        self._function = function
        self._options = options
        self._enabled = True
        self._turns: dict[str, Turn] = {}

    @property
    def cache_path(self) -> str | None:
        """The folder that entries are written to first."""
        return str(next(places(), "")) or None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None if there is none that is whole."""
        if not self._enabled:
            return None
        target_context.refresh()
        folder, name = environment(target_context.codegen().magic_tuple()), self._name(sig)
        entries = [place / folder / name for place in places()]
        kernel = _first_whole(entries, target_context)
        if kernel is None:
            announce(self._function, folder)
            if self._wait(entries):
                kernel = _first_whole(entries, target_context)
            if kernel is not None:
                self._end_turn(name)
        return kernel

    def _wait(self, entries: list[Path]) -> bool:
        """Take the turn to compile an entry; True: another process has written it meanwhile."""
        known = [_stamp(entry) for entry in entries]
        for entry in entries:
            self._end_turn(entry.name)  # one that was interrupted: nobody waits for oneself
            with suppress(OSError):
                entry.parent.mkdir(parents=True, exist_ok=True)
                turn = take_turn(entry, lambda: [_stamp(each) for each in entries] != known)
                if turn is not None:
                    self._turns[entry.name] = turn
                break
        return [_stamp(each) for each in entries] != known

    def holds(self, folder: str) -> bool:
        """Whether an entry of this code is there, of any types."""
        stem = f"{self._stem()}{code_digest(self._function, self._options)}"
        return any(next((place / folder).glob(f"{stem}*{_SUFFIX}"), None) for place in places())

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, in the first place that takes it."""
        name = self._name(sig)
        try:
            self._save(name, data)
        finally:
            self._end_turn(name)

    def _end_turn(self, name: str) -> None:
        turn = self._turns.pop(name, None)
        if turn is not None:
            turn.end()

    def giving_up(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """Numba's function that compiles the kernel; if it is interrupted or fails, other processes need not wait."""

        def compile_or_give_up(*arguments: Any) -> Any:
            try:
                return compiled(*arguments)
            except BaseException:
                for name in list(self._turns):
                    self._end_turn(name)
                raise

        return compile_or_give_up

    def _save(self, name: str, data: Any) -> None:
        if not self._enabled or data.library.has_dynamic_globals or any(not x.can_cache for x in data.lifted):
            return
        payload = dumps(data._reduce())
        machine = data.codegen.magic_tuple()
        for place in places():
            folder = place / environment(machine)
            with suppress(OSError):  # the next place, or none
                if not folder.is_dir():
                    folder.mkdir(parents=True, exist_ok=True)
                    drop_folders(place)
                write_entry(folder / name, payload)
                self._drop_older(folder)
                return

    def enable(self) -> None:
        """Look entries up and keep new ones."""
        self._enabled = True

    def disable(self) -> None:
        """Compile everything, keep nothing."""
        self._enabled = False

    def flush(self) -> None:
        """Nothing: Numba calls this to recompile, and an entry is never stale."""

    def _name(self, sig: Any) -> str:
        arguments, _ = normalize_signature(sig)
        types = hashlib.blake2b("; ".join(spelled(t) for t in arguments).encode(), digest_size=_DIGEST).hexdigest()
        return f"{self._stem()}{code_digest(self._function, self._options)}-{types}{_SUFFIX}"

    def _stem(self) -> str:
        return f"{self._function.__module__}.{self._function.__qualname__}-".replace("<", "").replace(">", "")

    def _drop_older(self, folder: Path) -> None:
        """Remove this kernel's entries of other code than it has now."""
        current = code_digest(self._function, self._options)
        for path in folder.glob(f"{self._stem()}*{_SUFFIX}"):
            if not path.name.startswith(f"{self._stem()}{current}"):
                path.unlink(missing_ok=True)


_purpose = ""  # what the latest engine is for
_expected: list[Any] = []  # kernels that it will call
_unneeded: list[Any] = []  # what they could call, and will not with the records that they are given
_said: set[Any] = set()  # what the line about it covered


def expect(purpose: str, *kernels: Any, without: tuple[Any, ...] = ()) -> None:
    """Name what an engine is for and going to call, so that the first compilation can tell how long all of it takes."""
    global _purpose
    _purpose = purpose
    _expected[:] = kernels
    _unneeded[:] = [kernel.py_func for kernel in without if isinstance(kernel, Dispatcher)]
    _said.clear()


def announce(function: Any, folder: str) -> None:
    """Say, once for an engine, that compiling takes a while, if it does."""
    if function in _said or os.environ.get("CERITE_QUIET", "") not in ("", "0"):
        return
    seen: set[Any] = {*_unneeded, *_said}
    total = bytes_to_compile(function, folder, seen)
    for kernel in _expected:
        if isinstance(kernel, Dispatcher) and kernel.py_func not in seen and not _is_cached(kernel, folder):
            total += bytes_to_compile(kernel.py_func, folder, seen)
    seconds = _SECONDS * total
    if seconds < _WORTH_SAYING:
        return
    _said.update(seen)
    cached = any(map(writable, places()))
    often = "once" if cached else "in every process: no folder to keep them can be written, set NUMBA_CACHE_DIR to one"
    what = f"kernels that {_purpose}" if _purpose else "kernels"
    print(
        f"cerite: compiling {what} for this machine, about {1 + round(seconds)} s, {often}", file=sys.stderr, flush=True
    )


def bytes_to_compile(function: Any, folder: str, seen: set[Any]) -> int:
    """The bytecode of a kernel and of all that it calls and that is not cached."""
    seen.add(function)
    total = len(function.__code__.co_code)
    for name in names_read(function.__code__):
        called = function.__globals__.get(name)
        if isinstance(called, Dispatcher) and called.py_func not in seen and not _is_cached(called, folder):
            total += bytes_to_compile(called.py_func, folder, seen)
    return total


def _is_cached(kernel: Any, folder: str) -> bool:
    return isinstance(kernel._cache, KernelCache) and kernel._cache.holds(folder)


def writable(place: Path) -> bool:
    """Whether a folder can be written, or created."""
    while not place.exists() and place != place.parent:
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK)


def places() -> Iterator[Path]:
    """Where entries may lie, first choice first. The user's own setting is the only place if there is one."""
    installation = hashlib.blake2b(str(_PACKAGE).encode(), digest_size=8).hexdigest()
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR) / f"cerite-{installation}"
        return
    if _PACKAGE.is_dir():  # and not inside an archive
        yield _PACKAGE / "__pycache__" / "kernels"
    with suppress(RuntimeError, OSError):  # a user without a home
        yield Path(AppDirs(appname="cerite", appauthor=False).user_cache_dir) / f"kernels-{installation}"


def environment(machine: tuple[Any, ...]) -> str:
    """The name of the folder for these versions and settings and this processor (`machine`: as LLVM tells it)."""
    versions = (_FORMAT, sys.version, numba.__version__, np.__version__, llvmlite.__version__)
    settings = tuple(str(getattr(config, name, "")) for name in ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "OPT"))
    description = repr((versions, settings, platform.python_implementation(), machine))
    return hashlib.blake2b(description.encode(), digest_size=_DIGEST).hexdigest()


def _first_whole(entries: list[Path], target_context: Any) -> Any:
    """The compiled kernel of the first entry that is whole, None if none is."""
    for entry in entries:
        payload = read_entry(entry)
        if payload is not None:
            with suppress(Exception):  # whatever Numba cannot rebuild is compiled
                return _rebuilt(target_context, pickle.loads(payload))
    return None


def _rebuilt(target_context: Any, reduced: tuple[Any, ...]) -> Any:
    """A kernel from the parts that its entry holds: machine code, or LLVM code if it is a helper."""
    if reduced[0][1] == _LLVM_CODE:
        from cerite.core import helper_code

        return helper_code.rebuild(target_context, reduced)
    return CompileResult._rebuild(target_context, *reduced)


def _stamp(path: Path) -> tuple[int, int] | None:
    """Which file an entry is: another one once it is written anew."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def read_entry(path: Path) -> bytes | None:
    """What an entry holds, or None if it is absent, cannot be read or is not whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, payload = content[:_DIGEST], content[_DIGEST:]
    return payload if hashlib.blake2b(payload, digest_size=_DIGEST).digest() == checksum else None


def write_entry(path: Path, payload: bytes) -> None:
    """Write an entry so that a reader sees all of it or none; raises OSError and leaves nothing if it cannot."""
    handle, beside = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.blake2b(payload, digest_size=_DIGEST).digest())
            file.write(payload)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def drop_folders(place: Path) -> None:
    """Remove all but the last used folders of other versions and processors."""
    folders = sorted((x for x in place.iterdir() if x.is_dir()), key=lambda x: x.stat().st_mtime, reverse=True)
    for folder in folders[_MOST_FOLDERS:]:
        shutil.rmtree(folder, ignore_errors=True)


def code_digest(function: Any, options: dict[str, Any]) -> str:
    """A digest of all code that a kernel is compiled from: its own and that of whatever it calls."""
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for line in code_lines(function, options, set()):
        digest.update(line.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def code_lines(function: Any, options: dict[str, Any], seen: set[Any]) -> Iterator[str]:
    """What machine code follows from, as text: bytecode, options and the values of the names that it reads."""
    if function in seen:
        return
    seen.add(function)
    yield f"{function.__name__} {sorted(options.items())!r} {function.__defaults__!r}"
    yield from bytecode_lines(function.__code__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name in names_read(function.__code__):
        if name in cells:
            yield from value_lines(name, cells[name].cell_contents, seen)
        elif name in function.__globals__:
            yield from value_lines(name, function.__globals__[name], seen)


def bytecode_lines(code: CodeType) -> Iterator[str]:
    """The instructions of a function and of those written inside it; not where they stand."""
    plain = [c for c in code.co_consts if not isinstance(c, CodeType)]
    yield f"{code.co_code.hex()} {plain!r} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for inside in code.co_consts:
        if isinstance(inside, CodeType):
            yield from bytecode_lines(inside)


def names_read(code: CodeType) -> list[str]:
    """The names that a function may look up outside itself, attributes among them."""
    inside = [c for c in code.co_consts if isinstance(c, CodeType)]
    return sorted({*code.co_names, *code.co_freevars, *(n for c in inside for n in names_read(c))})


def value_lines(name: str, value: Any, seen: set[Any]) -> Iterator[str]:
    """What a name stands for in machine code: another kernel's code, a constant, a module's constants."""
    if isinstance(value, Dispatcher):
        yield from code_lines(value.py_func, value.targetoptions, seen)
    elif isinstance(value, FunctionType) and value.__module__.partition(".")[0] == _OWN:
        yield from code_lines(value, {}, seen)
    elif isinstance(value, ModuleType):
        if value.__name__.partition(".")[0] == _OWN:
            constants = {k: v for k, v in vars(value).items() if isinstance(v, (int, float, str, tuple, np.generic))}
            yield f"{name} = {value.__name__} {sorted((k, repr(v)) for k, v in constants.items() if k[0] != '_')}"
    elif isinstance(value, np.ndarray):
        yield f"{name} = {value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, EnumMeta):
        yield f"{name} = {value.__qualname__} {dict(value.__members__)!r}"
    elif isinstance(value, type):
        yield f"{name} = {value.__qualname__} {getattr(value, '_fields', ())}"
    else:
        yield f"{name} = {type(value).__name__} {value!r}"


def spelled(numba_type: Any) -> str:
    """A type as text. Numba's own leaves out the names of a record's fields, which decide where each lies."""
    inside = getattr(numba_type, "types", None)
    if inside is None:
        return str(numba_type)
    fields = getattr(numba_type, "fields", ())
    return f"{numba_type} {fields} ({', '.join(spelled(t) for t in inside)})"
