"""What `pip install cerite` brings: a light import, and extras that are named where they are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import cerite
from cerite import errors, language, spark, testing
from cerite.core import errors as core_errors
from cerite.errors import CeriteError, MissingExtraError

HEAVY = ("altair", "numba", "numpy", "pandas", "polars", "pyspark", "typer")
ROOT = Path(__file__).parents[2]
_ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    """The code in a Python of its own, which has imported nothing yet."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)


def loaded(code: str) -> set[str]:
    """The heavy packages that are imported once the code has run."""
    run = python(f"{code}\nimport sys\nprint(*(name for name in {HEAVY} if name in sys.modules))")
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def without(package: str, code: str) -> subprocess.CompletedProcess[str]:
    """The code where a package cannot be imported."""
    return python(_ABSENT.format(package=package) + code)


def test_importing_cerite_imports_nothing_heavy() -> None:
    assert loaded("import cerite, cerite.spark, cerite.cli") == set()


def test_patterns_are_written_and_judged_without_the_engine() -> None:
    code = "from cerite import language, reference; reference.matches(language.parse_pattern('A'), [{'type': 'A'}])"
    assert loaded(code) == set()


def test_a_query_runs_without_extras() -> None:
    code = "import cerite; assert cerite.query('SELECT * FROM S WHERE A').run([{'type': 'A'}]).exists()"
    assert {"pyspark", "polars", "typer"}.isdisjoint(loaded(code))


def test_every_public_name_is_there_and_has_one_home() -> None:
    for package in (cerite, language, spark, testing):
        homes = [(module, name) for module, names in package._HOMES.items() for name in names]
        assert sorted(name for _, name in homes) == sorted(package.__all__)
        for module, name in homes:
            assert getattr(package, name) is getattr(import_module(f"cerite.{module}"), name)
    assert set(cerite.__all__) <= set(dir(cerite))
    assert len(cerite.__all__) <= 25, "what few need goes into `cerite.language`, `.errors` or another room"


def test_every_error_is_listed() -> None:
    kinds = (CeriteError, errors.CeriteWarning)
    known = {name for name, kind in vars(core_errors).items() if isinstance(kind, type) and issubclass(kind, kinds)}
    assert known == set(errors.__all__)


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        cerite.nonsense  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("package", "extra", "code"),
    [
        ("polars", "polars", "cerite.query('SELECT * FROM S WHERE A').run([{'type': 'A'}]).to_polars()"),
        ("pandas", "pandas", "cerite.query('SELECT * FROM S WHERE A').run([{'type': 'A'}]).to_pandas()"),
        ("altair", "plot", "cerite.query('SELECT * FROM S WHERE A').run([{'type': 'A'}]).plot().chart"),
        ("vl_convert", "plot", "cerite.query('SELECT * FROM S WHERE A').run([{'type': 'A'}]).plot('x.svg')"),
        ("graphviz", "graphviz", "cerite.query('SELECT * FROM S WHERE A').automaton.svg()"),
        ("pyspark", "spark", "from cerite import spark; spark.match"),
        ("pyspark", "spark", "from cerite.spark import session"),
        ("grpc", "connect", "from cerite import spark; spark.session(remote='sc://localhost')"),
    ],
)
def test_a_missing_extra_is_named_with_its_pip_line(package: str, extra: str, code: str) -> None:
    caught = "\nexcept cerite.CeriteError as error: print(type(error).__name__, error, sep='\\n')"
    run = without(package, f"import cerite\ntry: {code}{caught}")
    assert run.returncode == 0, run.stderr
    kind, message, hint = run.stdout.splitlines()
    assert kind == "MissingExtraError"
    assert f"needs the package `{package}`, which is not installed" in message
    assert hint == f"hint: pip install 'cerite[{extra}]'"


def test_the_command_names_its_extra() -> None:
    run = without("typer", "import runpy; runpy.run_module('cerite', run_name='__main__')")
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.splitlines() == [
        "error: the command `cerite` needs the package `typer`, which is not installed",
        "hint: pip install 'cerite[cli]'",
    ]


def test_a_missing_extra_is_an_import_error_too() -> None:
    assert issubclass(MissingExtraError, CeriteError)
    assert issubclass(MissingExtraError, ImportError)


@pytest.mark.skipif(sys.platform == "win32", reason="./dev is a shell script")
@pytest.mark.parametrize("failing", ["", "ruff", "lint-imports", "mypy"])
@pytest.mark.parametrize("command", ["lint", "test"])
def test_dev_fails_where_one_of_its_tools_does(command: str, failing: str, tmp_path: Path) -> None:
    """`./dev lint` once went on after ruff had found something, and succeeded."""
    (tmp_path / "bin").mkdir()
    for name in ("python", "ruff", "lint-imports", "mypy"):
        tool = tmp_path / "bin" / name
        tool.write_text(f"#!/bin/sh\nexit {int(name == failing)}\n")
        tool.chmod(0o755)
    (tmp_path / ".installed-dev").touch()
    variables = {**os.environ, "VENV": str(tmp_path)}
    run = subprocess.run([str(ROOT / "dev"), command], env=variables, capture_output=True, timeout=60)
    assert run.returncode == int(bool(failing))
