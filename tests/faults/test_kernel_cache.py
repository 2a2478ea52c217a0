"""Machine code on disk: never stale, never half, and nothing goes wrong where it cannot be saved."""

from __future__ import annotations

import errno
import importlib
import inspect
import io
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba.core import compiler, ir
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target

import cerite
from cerite.core import helper_code, jit, kernel_cache, pipeline, turns

HELPER = """
from cerite.core.jit import inlined, inner
STEP = 10
@inner
def helper(x):
    return x + STEP
@inlined
def twice(x):
    return 2 * x
"""
PROBE = """
import sys
from typing import NamedTuple
import numpy as np
from cerite.core import jit
from cerite.helper import helper, twice
class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray
@jit.kernel
def probe(pair):
    return helper(twice(pair.first[0])) - pair.second[0]
value = probe(Pair(first=np.array([1]), second=np.array([2])))
print(value, sum(probe.stats.cache_hits.values()))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package of two kernel files with Cerite's way of compiling."""
    package = tmp_path / "tree" / "cerite"
    (package / "core").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "core" / "__init__.py").write_text("")
    (package / "helper.py").write_text(HELPER)
    (package / "probe.py").write_text(PROBE)
    for module in (helper_code, jit, kernel_cache, pipeline, turns):
        shutil.copy(str(module.__file__), package / "core")
    return package


def start(tree: Path, **settings: str) -> subprocess.Popen[str]:
    """Run the probe in a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environ = {**inherited, "PYTHONPATH": str(tree.parent), "PYTHONDONTWRITEBYTECODE": "1", **settings}
    command = [sys.executable, "-c", "import cerite.probe"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environ, cwd=tree.parent, text=True, stdout=pipe, stderr=pipe)


def outcome(process: subprocess.Popen[str]) -> tuple[int, int]:
    """The probe's value, and how often it came from the cache."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    value, hits = out.split()
    return int(value), int(hits)


def entries(tree: Path) -> list[Path]:
    return sorted(tree.rglob("*.kernel"))


def test_a_change_in_another_file_is_seen(tree: Path) -> None:
    assert outcome(start(tree)) == (10, 0)
    assert outcome(start(tree)) == (10, 1)
    changes = [
        ("helper.py", "2 * x", "3 * x", 11),  # a helper that is compiled into its caller
        ("helper.py", "x + STEP", "x - STEP", -9),  # a helper that is called
        ("helper.py", "STEP = 10", "STEP = 100", -99),  # a constant of another file
        ("probe.py", "second: np", "zeroth: np", None),  # the fields of a record, in another order
    ]
    for name, old, new, value in changes:
        path = tree / name
        text = path.read_text().replace(old, new)
        if value is None:
            text = text.replace("pair.second", "pair.zeroth").replace("second=", "zeroth=")
            text = text.replace("    first: np.ndarray\n", "").replace(
                "zeroth: np.ndarray", "zeroth: np.ndarray\n    first: np.ndarray"
            )
            value = -99
        path.write_text(text)
        assert outcome(start(tree)) == (value, 0)
    assert outcome(start(tree)) == (-99, 1)
    assert len(entries(tree)) == 2  # the probe's and the helper's: entries of earlier code are gone


def test_moving_a_kernel_down_its_file_compiles_nothing(tree: Path) -> None:
    outcome(start(tree))
    (tree / "probe.py").write_text("# a comment\n\n" + PROBE)
    assert outcome(start(tree)) == (10, 1)


def test_a_damaged_entry_is_compiled_anew(tree: Path) -> None:
    outcome(start(tree))
    for damage in (lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-1] + bytes([b[-1] ^ 1])):
        for entry in entries(tree):
            entry.write_bytes(damage(entry.read_bytes()))
        assert outcome(start(tree)) == (10, 0)


def test_processes_that_compile_at_once(tree: Path) -> None:
    processes = [start(tree) for _ in range(3)]
    assert {outcome(p)[0] for p in processes} == {10}
    assert outcome(start(tree)) == (10, 1)
    assert not list(tree.rglob("*.part"))
    assert not list(tree.rglob("*.lock"))


def test_one_process_compiles_and_the_others_take_what_it_writes(tree: Path) -> None:
    outcome(start(tree))
    whole = {entry: entry.read_bytes() for entry in entries(tree)}
    for entry in whole:
        entry.unlink()
    held = [turns.take_turn(entry, entry.exists) for entry in whole]  # as a process that compiles does
    waiting = start(tree)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(5)
    for entry, content in whole.items():
        kernel_cache.write_entry(entry, content[kernel_cache._DIGEST :])
    for turn in held:
        assert turn is not None
        turn.end()
    assert outcome(waiting) == (10, 1)


def test_nobody_waits_for_a_process_that_was_killed(tree: Path) -> None:
    outcome(start(tree))
    for entry in entries(tree):
        entry.unlink()
        entry.with_suffix(".lock").touch()  # without its process a lock is only a file
    assert outcome(start(tree)) == (10, 0)


def test_nobody_waits_for_a_compilation_that_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Ctrl-C does not end the process, as in a notebook, neither others wait for it nor it for itself."""
    monkeypatch.setattr(kernel_cache, "places", lambda: iter([tmp_path]))

    def interrupted(*_: object, **__: object) -> None:
        assert len(list(tmp_path.rglob("*.lock"))) == 1, "a process that compiles has its turn"
        raise KeyboardInterrupt

    @jit.kernel
    def doubled(n: int) -> int:
        return 2 * n

    whole = compiler.compile_extra
    monkeypatch.setattr(compiler, "compile_extra", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            doubled(3)
        assert not list(tmp_path.rglob("*.lock"))
    monkeypatch.setattr(compiler, "compile_extra", whole)
    with monkeypatch.context() as patch:
        patch.setattr(doubled._compiler, "compile", interrupted)  # type: ignore[attr-defined]  # gives nothing up
        with pytest.raises(KeyboardInterrupt):
            doubled(3)
    began = time.monotonic()
    assert doubled(3) == 6
    assert time.monotonic() - began < turns.PATIENCE / 2
    assert not list(tmp_path.rglob("*.lock"))


def test_the_users_own_setting_is_the_place(tree: Path, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    assert outcome(start(tree, NUMBA_CACHE_DIR=str(place))) == (10, 0)
    assert outcome(start(tree, NUMBA_CACHE_DIR=str(place))) == (10, 1)
    assert list(place.rglob("*.kernel"))
    assert not entries(tree)


def test_nowhere_to_write(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for _ in range(2):
        assert outcome(start(tree, NUMBA_CACHE_DIR=str(tmp_path / "file" / "below"))) == (10, 0)


def test_sources_that_cannot_be_written_beside_use_the_users_cache(tree: Path, tmp_path: Path) -> None:
    (tree / "__pycache__").write_text("")  # a file: no folder can be made here, not even by root
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home" / "cache")}
    assert outcome(start(tree, **home)) == (10, 0)
    assert outcome(start(tree, **home)) == (10, 1)
    assert list((tmp_path / "home").rglob("*.kernel"))


def refuse(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


class FullFile(io.FileIO):
    """A file on a full disk: it can be opened, and not written."""

    write = refuse


def fill_before_a_write(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "fdopen", lambda handle, mode: io.BufferedWriter(FullFile(handle, mode)))


def fill_before_a_move(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "replace", refuse)


@pytest.mark.parametrize("fill", [fill_before_a_write, fill_before_a_move])
def test_a_full_disk_leaves_no_part_of_an_entry(
    fill: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(monkeypatch)
    for payload in (b"code", b"code" * 100_000):  # written at the end, and before it
        with pytest.raises(OSError, match="No space"):
            kernel_cache.write_entry(tmp_path / "x.kernel", payload)
        assert not list(tmp_path.iterdir())

    monkeypatch.setattr(kernel_cache, "places", lambda: iter([tmp_path]))
    function: Callable[[int], int] = jit.kernel(lambda x: x + 1)
    assert function(1) == 2
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_old_folders_go(tmp_path: Path) -> None:
    for age in range(7):
        folder = tmp_path / f"folder{age}"
        folder.mkdir()
        os.utime(folder, (1e9 - age, 1e9 - age))
    kernel_cache.drop_folders(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder0", "folder1", "folder2", "folder3"]


def kernels() -> list[Dispatcher]:
    """Every kernel of Cerite."""
    for module in pkgutil.walk_packages(cerite.__path__, "cerite."):
        if "__main__" not in module.name:
            importlib.import_module(module.name)
    modules = [m for name, m in sys.modules.items() if name.startswith("cerite.")]
    dispatchers = {id(v): v for m in modules for v in vars(m).values() if isinstance(v, Dispatcher)}
    return list(dispatchers.values())


def test_every_name_that_a_kernel_reads_is_reported_by_its_value() -> None:
    known = (Dispatcher, int, float, np.generic, type(os), type)
    for kernel in kernels():
        code, names = kernel.py_func.__code__, kernel.py_func.__globals__
        odd = [n for n in kernel_cache.names_read(code) if n in names and not isinstance(names[n], known)]
        assert not odd, (kernel, odd)
        assert not any(" 0x" in x for x in kernel_cache.code_lines(kernel.py_func, kernel.targetoptions, set()))


def test_the_digest_of_a_kernel_covers_what_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    by_name = {f"{k.py_func.__module__}.{k.py_func.__name__}": k for k in kernels()}
    update = by_name["cerite.engine.registers.recogniser.update"]
    before = kernel_cache.code_digest(update.py_func, update.targetoptions)
    union = by_name["cerite.engine.tecs.nodes.union"].py_func
    monkeypatch.setattr(union, "__code__", (lambda tecs, a, b: 0).__code__)
    assert kernel_cache.code_digest(update.py_func, update.targetoptions) != before


def test_the_digest_of_a_kernel_covers_the_members_of_enumerations() -> None:
    lines = [list(kernel_cache.value_lines("Stop", IntEnum("Stop", {"DONE": value}), set())) for value in (0, 1)]
    assert lines[0] != lines[1]


def test_a_numba_that_refuses_the_private_option(monkeypatch: pytest.MonkeyPatch) -> None:
    assert jit.borrowing() == {"_nrt": False}  # as of the Numba that is installed

    def refuse(*_: Any) -> None:
        raise KeyError("Unrecognized options: {'_nrt'}")

    with monkeypatch.context() as patch:
        patch.setattr(cpu_target.options, "parse_as_flags", refuse)
        assert jit.borrowing() == {}
    monkeypatch.setattr(jit, "_BORROWS", {})
    ends: Callable[[Any], int] = jit.kernel(lambda x: x[0] + x[3])
    assert ends(np.arange(4)) == 3


REFUSING = """
import json, sys
from numba.core.registry import cpu_target
accept = cpu_target.options.parse_as_flags
def refuse(flags, options):
    if "_nrt" in options:
        raise KeyError("Unrecognized options: {'_nrt'}")
    return accept(flags, options)
cpu_target.options.parse_as_flags = refuse
import cerite
from cerite.core import jit
assert jit.borrowing() == {}
matches = cerite.query(sys.argv[1]).run(json.loads(sys.argv[2]))
print(json.dumps([[match.start, match.end, match.bindings] for match in matches]))
"""


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param("z[v > 3]", id="subsets"),
        pytest.param("z[v > x.v]", id="registers", marks=pytest.mark.nightly),  # which take long to compile
    ],
)
def test_a_query_under_a_numba_that_refuses_the_private_option(condition: str) -> None:
    rows = [{"type": kind, "v": v} for kind, v in zip("ABCABBCAC", (3, 1, 4, 1, 5, 9, 2, 6, 5), strict=True)]
    text = f"SELECT * FROM S WHERE A AS x ; B+ AS y ; C AS z FILTER {condition} WITHIN 7 EVENTS"
    beside = next(kernel_cache.places()).with_name("kernels-refused")  # kept, and not among those of other tests
    command = [sys.executable, "-c", REFUSING, text, json.dumps(rows)]
    environ = {**os.environ, "NUMBA_CACHE_DIR": str(beside), "CERITE_QUIET": "1"}
    outcome = subprocess.run(command, env=environ, text=True, capture_output=True, timeout=300, check=False)
    assert outcome.returncode == 0, outcome.stderr
    expected = [[match.start, match.end, match.bindings] for match in cerite.query(text).run(rows)]
    assert outcome.stdout.strip() == json.dumps(expected)
    assert len(expected) > 3


def test_inlining_with_and_without_shared_scopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both compile the same: also helpers inside helpers, with variables of one name and branches."""
    assert len(pipeline.shared_scopes()) == 1  # as of the Numba that is installed

    @jit.inlined
    def larger(a: int, b: int) -> int:
        x = a
        if b > x:
            x = b
        return x

    @jit.inlined
    def largest(a: int, b: int, c: int) -> int:
        x = larger(a, b)
        return larger(x, c) + x - x

    def sums(values: Any) -> int:
        x = 0
        for k in range(values.shape[0]):
            x += largest(values[k, 0], values[k, 1], values[k, 2])
        return x

    values = np.random.default_rng(1).integers(-9, 9, (50, 3))
    assert jit.kernel(sums)(values) == values.max(axis=1).sum()
    assert not hasattr(ir.Scope, "__deepcopy__"), "only while a kernel is compiled"
    with monkeypatch.context() as patch:
        patch.setattr(ir.Scope, "__deepcopy__", lambda scope, _: scope, raising=False)
        assert pipeline.shared_scopes() == {}
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "numba.core.untyped_passes", None)
        assert pipeline.shared_scopes() == {}
    monkeypatch.setattr(jit, "_PASSES", {})
    assert jit.kernel(sums)(values) == values.max(axis=1).sum()


@jit.inner
def factorial(n: int) -> int:
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@jit.inner
def is_even(n: int) -> bool:
    if n == 0:
        return True
    return is_odd(n - 1)


@jit.inner
def is_odd(n: int) -> bool:
    if n == 0:
        return False
    return is_even(n - 1)


def kernels_with_helpers() -> tuple[Any, Any, list[Any]]:
    """Two kernels that call the same helpers, one of which calls the other."""

    @jit.inner
    def larger(a: int, b: int) -> int:
        return a if a > b else b

    @jit.embedded
    def largest(a: int, b: int, c: int) -> int:
        return int(larger(larger(a, b), c) + factorial(a - a + 3))

    def sums(values: Any) -> int:
        total = 0
        for k in range(values.shape[0]):
            total += largest(values[k, 0], values[k, 1], values[k, 2])
        return total

    def highest(values: Any) -> int:
        return int(largest(values[0, 0], values[1, 1], values[2, 2]))

    return jit.kernel(sums), jit.kernel(highest), [larger, largest]


def test_helpers_end_as_llvm_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels compute the same compiled, from the cache, compiled with helpers from the cache, and without all that."""
    assert len(pipeline.without_machine_code()) == 1  # as of the Numba that is installed
    monkeypatch.setattr(kernel_cache, "places", lambda: iter([tmp_path]))
    values = np.random.default_rng(2).integers(-9, 9, (50, 3))
    total, of_three = values.max(axis=1).sum() + 50 * 6, values.diagonal().max() + 6
    sums, _, helpers = kernels_with_helpers()
    assert sums(values) == total
    names = {result.fndesc.llvm_func_name for helper in helpers for result in helper.overloads.values()}
    assert len(names) == 2
    assert not any(map(sums.overloads[sums.signatures[0]].codegen._engine.is_symbol_defined, names))
    sums, highest, helpers = kernels_with_helpers()
    assert (sums(values), sum(sums.stats.cache_hits.values())) == (total, 1)
    assert (highest(values), sum(highest.stats.cache_hits.values())) == (of_three, 0)
    assert sum(sum(helper.stats.cache_hits.values()) for helper in helpers) >= 1
    _, highest, _ = kernels_with_helpers()
    assert (highest(values), sum(highest.stats.cache_hits.values())) == (of_three, 1)
    monkeypatch.setattr(jit, "_PASSES", {})
    monkeypatch.setattr(kernel_cache, "places", lambda: iter(()))
    sums, highest, _ = kernels_with_helpers()
    assert (sums(values), highest(values)) == (total, of_three)


def test_helpers_in_a_circle_are_refused() -> None:
    is_even_number: Callable[[int], bool] = jit.kernel(lambda n: is_even(n))
    with pytest.raises(NotImplementedError, match="call each other in a circle"):
        is_even_number(4)


def test_a_numba_whose_lowering_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(pipeline.without_machine_code()) == 1  # as of the Numba that is installed
    monkeypatch.setitem(sys.modules, "numba.core.typed_passes", None)
    assert pipeline.without_machine_code() == {}


def test_compiling_for_long_is_said_once_for_an_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CERITE_QUIET", raising=False)
    monkeypatch.setattr(kernel_cache, "places", lambda: iter(()))
    kernel_cache.expect("add numbers")
    short: Callable[[int], int] = jit.kernel(lambda x: x + 2)
    assert short(1) == 3
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(kernel_cache, "_SECONDS", 1.0)
    first: Callable[[float], float] = jit.kernel(lambda x: x + 3)
    second: Callable[[float], float] = jit.kernel(lambda x: x + 4)
    kernel_cache.expect("add numbers", first, second)
    assert (first(1), first(1.5), second(1)) == (4, 4.5, 5)
    said = capsys.readouterr().err
    assert said.startswith("cerite: compiling kernels that add numbers for this machine, about ")
    assert "set NUMBA_CACHE_DIR" in said
    assert said.count("\n") == 1
    kernel_cache.expect("add other numbers", second)
    assert second(1.5) == 5.5
    assert "kernels that add other numbers" in capsys.readouterr().err
    monkeypatch.setenv("CERITE_QUIET", "1")
    kernel_cache.expect("add in silence")
    assert second(True) == 5
    assert capsys.readouterr().err == ""


def test_what_is_kept_is_not_counted_as_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    by_name = {f"{k.py_func.__module__}.{k.py_func.__name__}": k for k in kernels()}
    update = by_name["cerite.engine.registers.recogniser.update"].py_func
    monkeypatch.setattr(kernel_cache, "places", lambda: iter(()))
    all_of_it = kernel_cache.bytes_to_compile(update, "", set())
    monkeypatch.setattr(kernel_cache.KernelCache, "holds", lambda self, folder: True)
    assert kernel_cache.bytes_to_compile(update, "", set()) < all_of_it / 2


def test_a_plain_query_compiles_nothing_of_selection() -> None:
    table = pa.table({"type": ["A", "B"] * 4})
    query = "SELECT {} FROM S WHERE A ; B"
    enumerate_roots = next(k for k in kernels() if k.py_func.__name__ == "enumerate_roots")
    assert cerite.query(query.format("*")).run(table).to_arrow().num_rows == 10
    assert cerite.query(query.format("NEXT *")).run(table).to_arrow().num_rows == 4
    spelled = {str(types[5]).partition("(")[0] for types in enumerate_roots.signatures}
    assert spelled == {"none", "Chooser"}


def test_a_query_with_registers_compiles_nothing_of_watching_nor_of_longer_programs() -> None:
    table = pa.table({"type": ["A", "B"] * 4, "v": range(8)})
    query = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[{}]"
    by_name = {f"{k.py_func.__module__}.{k.py_func.__name__}": k for k in kernels()}
    update = by_name["cerite.engine.registers.recogniser.update"]

    places = [list(inspect.signature(update.py_func).parameters).index(name) for name in ("code", "watching")]

    def records() -> set[tuple[str, ...]]:
        return {tuple(str(types[k]).partition("(")[0] for k in places) for types in update.signatures}

    before = records()
    assert cerite.query(query.format("v > x.v")).run(table).to_arrow().num_rows == 10
    assert records() - before <= {("none", "none")} <= records()
    assert cerite.query(query.format("v + x.v > 4")).run(table).to_arrow().num_rows == 8
    assert records() - before <= {("none", "none"), ("Code", "none")} <= records()
