from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import weft
from weft.core.errors import BuildError, DuplicateName, ToolNotFound
from weft.testing import FakeTools
from weft.workflow.apps.tool_sources import ToolSources

FILE = '''
import weft
from math import sqrt

@weft.tool
def double(number: int) -> int:
    """Twice a number."""
    return 2 * number

@weft.tool(name="half")
def halved(number: int) -> float:
    """Half a number."""
    return number / 2
'''


@weft.tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "more" / "tools.py"
    path.parent.mkdir()
    path.write_text(FILE)
    return path


def names(*sources: object) -> list[str]:
    return [spec.name for spec in ToolSources(sources).runner.specs()]  # type: ignore[arg-type]


def test_tools_come_from_functions_files_names_and_runners(file: Path) -> None:
    assert names(greet, file) == ["greet", "double", "half"]
    assert names(FakeTools(search=len), greet) == ["greet", "search"]
    assert names() == []


def test_one_tool_of_a_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    sources = ToolSources(["./tools.py:halved"])
    assert asyncio.run(sources.runner.call("half", {"number": 3})) == 1.5
    assert sources.declarations(file.parent).tools == {"half": "./tools.py:halved"}


def test_a_workflow_file_beside_or_above_names_the_tools(file: Path) -> None:
    sources = ToolSources([str(file)])
    assert sources.declarations(file.parent).tools == {
        "double": "./tools.py:double",
        "half": "./tools.py:halved",
    }
    assert sources.declarations(file.parent.parent).tools["double"] == "./more/tools.py:double"


def test_a_workflow_file_elsewhere_cannot_name_them(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with pytest.raises(BuildError, match="lies outside"):
        ToolSources([file]).declarations(elsewhere)
    with pytest.raises(BuildError, match="cannot name the tool greet"):
        ToolSources([greet]).declarations(elsewhere)


def test_what_is_no_tool_is_refused_with_a_remedy(tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    with pytest.raises(BuildError, match=r"empty\.py defines no tools"):
        ToolSources([empty])
    with pytest.raises(BuildError, match="there is no file"):
        ToolSources([tmp_path / "missing.py"])
    with pytest.raises(BuildError, match="is not a tool"):
        names(len)


def test_two_tools_of_one_name_are_refused(file: Path) -> None:
    with pytest.raises(DuplicateName):
        ToolSources([file, file])


FLOW = """
name: any
tools:
  twice: ./tools.py:double
nodes:
  a: {tool: twice, with: {number: 2}}
outputs: {a: "{{ a }}"}
"""


@pytest.mark.parametrize(
    "text",
    [
        FLOW,
        FLOW.partition("nodes:")[0],
        "tools:" + FLOW.partition("tools:")[2].partition("nodes:")[0],
    ],
)
def test_the_tools_of_a_workflow_file(file: Path, tmp_path: Path, text: str) -> None:
    flow = file.parent / "flow.yaml"
    flow.write_text(text)

    async def used() -> tuple[list[str], object]:
        async with ToolSources([str(flow), greet]) as sources:
            there = sources.declarations(file.parent, ["twice"])
            assert (there.tools, there.called) == (
                {"twice": {"use": "./tools.py:double"}},
                {"twice": "twice"},
            )
            with pytest.raises(BuildError, match="declared in another folder"):
                sources.declarations(tmp_path, ["twice"])
            with pytest.raises(ToolNotFound, match="no tool 'double'"):
                await sources.runner.call("double", {})
            called = await sources.runner.call("twice", {"number": 4})
            return [spec.name for spec in sources.runner.specs()], called

    assert asyncio.run(used()) == (["greet", "twice"], 8)


def test_a_file_without_nodes_is_still_checked(file: Path) -> None:
    flow = file.parent / "flow.yaml"
    for text, told in (
        ("name: any\n", "nodes"),
        ("tools: {}\n", "nodes"),
        ("tools: {twice: ./tools.py:double}\nnode: {}\n", "node"),
        ("tools: {twice: {}}\n", "the tool has no `use`"),
    ):
        flow.write_text(text)
        with pytest.raises(BuildError, match=told):
            ToolSources([str(flow)])


def test_tools_from_schemas_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "declared.py"
    file.write_text(
        "import json\nimport weft\n"
        "parse = weft.tool_from_schema(json.loads, {'name': 'json.loads', 'parameters':"
        " {'type': 'dict', 'properties': {'s': {'type': 'str'}}, 'required': ['s']}})\n"
    )

    async def used() -> object:
        async with ToolSources([file]) as sources:
            assert sources.declarations(tmp_path).tools == {"json_loads": "./declared.py:parse"}
            return await sources.runner.call("json_loads", {"s": "[1]"})

    assert asyncio.run(used()) == [1]
