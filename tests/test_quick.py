"""`make test` looks at every package, and at vLLM on one server; its table names what there is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePath

import pytest

from tests import quick

TESTS = Path(__file__).parent
WEFT = TESTS.parent / "weft"
PACKAGES = sorted(path.parent.name for path in WEFT.glob("*/__init__.py"))
SUITES = ("model_client.py", "tokenizing.py")
"""Whose tests a class that is named inherits."""


@dataclass(frozen=True)
class Case:
    nodeid: str
    marks: tuple[str, ...] = ()

    def get_closest_marker(self, name: str) -> object:
        return name if name in self.marks else None


def modules(folder: Path) -> list[PurePath]:
    return [path.relative_to(TESTS) for path in folder.rglob("test_*.py")]


@pytest.mark.parametrize("package", PACKAGES)
def test_most_modules_of_each_package_are_in_it(package: str) -> None:
    there = modules(TESTS / package)
    full = [path for path in there if quick.is_full_module(path)]
    assert there
    assert len(full) <= len(there) / 2, full


def test_the_table_names_what_there_is() -> None:
    for name in quick.FULL:
        path, _, function = name.partition("::")
        assert (TESTS / path).exists(), name
        assert not function or f"def {function}(" in (TESTS / path).read_text("utf-8"), name
    assert list(quick.FULL) == sorted(set(quick.FULL))


@pytest.mark.parametrize("name", quick.VLLM)
def test_its_tests_of_vllm_share_one_server(name: str) -> None:
    path, *_, test = name.split("::")
    text = (TESTS / path).read_text("utf-8")
    assert "live_vllm: LiveVllm" in text
    assert not re.search(r"Popen|VllmModel", text)
    assert not quick.is_full_module(PurePath(path))
    suites = [(TESTS / "conformance" / name).read_text("utf-8") for name in SUITES]
    assert f"def {test}(" in "".join((text, *suites))


def test_cases_are_spread_over_all_that_there_are() -> None:
    many = [Case(f"tests/a/test_b.py::test_c[{n}]") for n in range(100)]
    assert sorted(set(range(100)) - quick.left_to_full(many)) == [0, 25, 50, 75]
    assert quick.left_to_full(many[:2]) == set()


def test_of_vllm_only_what_is_named_is_in_it() -> None:
    cases = [Case(f"tests/{quick.VLLM[0]}", ("vllm",)), Case("tests/a.py::test_b", ("vllm",))]
    assert quick.left_to_full(cases) == {1}


def test_continuous_integration_runs_the_rest_as_well() -> None:
    recipes = (TESTS.parent / "Makefile").read_text("utf-8")
    assert "make test-full" in (TESTS.parent / ".ci" / "run").read_text("utf-8")
    assert "not full" in recipes.split("\ntest: ")[1].split("\n\n")[0]
    assert "not full" not in recipes.split("\ntest-full: ")[1].split("\n\n")[0]
