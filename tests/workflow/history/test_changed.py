"""What counts as a change of code, for records of this weft and of those before it."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.core.ids import RunId
from weft.core.ports.journal import RunHeader
from weft.workflow.compile.sources import SourceDigests, digests_like, sources_of
from weft.workflow.document.loader import load_unit
from weft.workflow.document.unit import Unit
from weft.workflow.history.workflow_diff import diff_workflow

TOOLS = """
import weft

@weft.tool
def one() -> int:
    return 1

@weft.tool
def two() -> int:
    return 2
"""
FLOW = """
name: both
tools: {one: "./tools.py:one", two: "./tools.py:two"}
nodes:
  a: {tool: one}
  b: {tool: two}
outputs: {a: "{{ a }}", b: "{{ b }}"}
"""


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    (tmp_path / "both.yaml").write_text(FLOW)
    (tmp_path / "tools.py").write_text(TOOLS)
    return load_unit(tmp_path / "both.yaml")


def recorded(unit: Unit, digests: SourceDigests) -> RunHeader:
    return RunHeader(RunId("one"), "both", "", "", document=sources_of(unit, digests))


def verdicts(header: RunHeader, unit: Unit) -> tuple[list[str], list[str]]:
    found = diff_workflow(header, unit, {})
    return list(found.files), [node.node for node in found.nodes if node.verdict != "unchanged"]


def test_each_function_is_watched_by_itself(unit: Unit) -> None:
    header = recorded(unit, SourceDigests())
    assert sorted(header.document) == ["both.yaml", "tools.py:one", "tools.py:two"]
    assert verdicts(header, unit) == ([], [])
    (unit.root / "tools.py").write_text(TOOLS.replace("return 2", "return 3"))
    assert verdicts(header, unit) == (["tools.py:two"], ["b"])
    (unit.root / "tools.py").write_text(f"# Both.\n{TOOLS}")
    assert verdicts(header, unit) == ([], [])


def test_records_that_know_whole_files_are_compared_by_them(unit: Unit) -> None:
    header = recorded(unit, SourceDigests(functions=False))
    assert sorted(header.document) == ["both.yaml", "tools.py"]
    assert verdicts(header, unit) == ([], [])
    assert sources_of(unit, digests_like(header)) == header.document
    (unit.root / "tools.py").write_text(f"# Both.\n{TOOLS}")
    assert verdicts(header, unit) == (["tools.py"], ["a", "b"])


def test_functions_of_a_program_are_watched() -> None:
    def unit_of(step: int) -> Unit:
        def add(x: int) -> int:
            return x + 1

        def subtract(x: int) -> int:
            return x - 1

        flow = weft.Flow("count")
        flow.output(n=flow.call(add if step > 0 else subtract, x=1, name="n"))
        return flow.unit

    header = recorded(unit_of(1), SourceDigests())
    assert "python/count:add" in header.document
    assert not diff_workflow(header, unit_of(2), {}).matter
    assert diff_workflow(header, unit_of(-1), {}).matter
