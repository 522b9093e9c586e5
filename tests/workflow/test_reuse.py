"""Calls of tools in one run that need not be made."""

from __future__ import annotations

from pathlib import Path

import weft

TOOLS = '''
"""Tools that write down how they are called."""

import weft

made = []


@weft.tool(pure=True)
def length(text: str) -> int:
    made.append(text)
    return len(text)


@weft.tool
def stamp(text: str) -> int:
    made.append(text)
    return len(made)


def prices(calls):
    made.append(len(calls))
    return [ValueError("not for sale") if call["item"] == "moon" else 1.5 for call in calls]


@weft.tool(batch=prices)
def price(item: str) -> float:
    made.append(item)
    return 1.5
'''
HEAD = """
name: f
tools: {length: "./tools.py:length", stamp: "./tools.py:stamp", price: "./tools.py:price"}
nodes:
"""


def run(folder: Path, *nodes: str) -> tuple[weft.FlowResult, list[object]]:
    (folder / "tools.py").write_text(TOOLS, "utf-8")
    lines = "\n".join(f"  {node}" for node in nodes)
    flow = weft.loads(f'{HEAD}{lines}\noutputs: {{x: "{{{{ a }}}}"}}\n', str(folder / "f.yaml"))
    result = flow.run_sync()
    from weft.workflow.runtime.tools.functions import function_of

    made: list[object] = function_of(flow.unit, "./tools.py:length").__globals__["made"]
    return result, made


def test_a_pure_tool_is_called_once_for_equal_arguments(tmp_path: Path) -> None:
    result, made = run(
        tmp_path,
        "one: {tool: length, with: {text: tea}}",
        "two: {tool: length, with: {text: tea}}",
        "three: {tool: length, with: {text: jam}, after: [one]}",
        'a: {value: ["{{ one }}", "{{ two }}", "{{ three }}"]}',
    )
    assert result["x"] == [3, 3, 3]
    assert sorted(map(str, made)) == ["jam", "tea"]


def test_other_tools_are_called_each_time(tmp_path: Path) -> None:
    result, made = run(
        tmp_path,
        "one: {tool: stamp, with: {text: tea}}",
        "two: {tool: stamp, with: {text: tea}}",
        'a: {value: ["{{ one }}", "{{ two }}"]}',
    )
    assert result.ok
    assert made == ["tea", "tea"]


def test_calls_of_a_map_are_fused_and_fail_alone(tmp_path: Path) -> None:
    result, made = run(
        tmp_path,
        "a:",
        "    map: [tea, moon, jam]",
        '    do: {tool: price, with: {item: "{{ item }}"}, default: 0.0}',
    )
    assert result["x"] == [1.5, 0.0, 1.5]
    assert made == [3]
