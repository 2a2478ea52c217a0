"""The deliberate faults of `./dev mutants` still fit the code: each changes one place, and every one is another."""

import ast

import pytest

from tests.mutants import FAULTS, ROOT, TESTS, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.breaks)
def test_a_fault_changes_one_place(fault: Fault) -> None:
    source = (ROOT / "cerite" / "engine" / fault.file).read_text("utf-8")
    assert source.count(fault.old) == 1
    ast.parse(source.replace(fault.old, fault.new))


def test_faults_are_distinguished_and_their_tests_exist() -> None:
    assert len({(fault.file, fault.old) for fault in FAULTS}) == len(FAULTS) == len({fault.breaks for fault in FAULTS})
    assert all((ROOT / path).exists() for path in TESTS)
