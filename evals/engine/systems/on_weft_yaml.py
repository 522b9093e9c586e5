"""weft as one writes it in a file: a YAML workflow with its tools in a Python file beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import weft
from evals.engine.cases import Case, Task
from evals.engine.systems import Program, tools
from evals.engine.systems.on_weft_flow import runs_of


def build(system: str, case: Case, folder: Path) -> Program:
    """The workflow of `case`, read from a file in `folder`; `run: {durability: none}` or not."""
    recorded = not system.endswith("_none")
    path = write_workflow(case, folder, Path(tools.__file__), recorded=recorded)
    return runs_of(weft.load(path), case, {})


def write_workflow(case: Case, folder: Path, functions: Path, *, recorded: bool = True) -> Path:
    """Write the workflow of `case`, and a copy of the file with its `functions` beside it."""
    shutil.copy(functions, folder / "tools.py")
    path = folder / f"{case.name}.yaml"
    path.write_text("\n".join(_lines(case, recorded=recorded)) + "\n", encoding="utf-8")
    return path


def _lines(case: Case, *, recorded: bool) -> Iterator[str]:
    yield f"name: {case.name}"
    yield f"inputs: {{first: integer{', items: [integer]' if case.shape == 'map' else ''}}}"
    yield "tools:"
    used = {"map": {"step"}, "conversation": {"turn"}}.get(case.shape)
    for tool in sorted(used or {_tool(task) for task in case.tasks}):
        yield f"  {tool}: ./tools.py:{tool}"
    if not recorded:
        yield "run: {durability: none}"
    yield "nodes:"
    if case.shape == "map":
        yield "  all: {map: '{{ items }}', as: item, do: {tool: step, with: {value: '{{ item }}'}}}"
        yield "outputs: {last: '{{ all }}'}"
    elif case.shape == "conversation":
        given = "{talk: '{{ first }}', number: '{{ iteration }}', messages: '{{ messages }}'}"
        turns = len(case.tasks)
        yield "  talk:"
        yield f"    loop: {{tool: turn, with: {given}}}"
        yield "    as: messages"
        yield "    start: []"
        yield f"    until: '{{{{ messages | length == {2 * turns} }}}}'"
        yield f"    max: {turns}"
        yield "outputs: {last: '{{ talk }}'}"
    else:
        for task in case.tasks:
            parents = [case.tasks[place].name for place in task.parents] or ["first"]
            yield f"  {task.name}: {{tool: {_tool(task)}, with: {{{_arguments(task, parents)}}}}}"
        yield f"outputs: {{last: '{{{{ {case.tasks[-1].name} }}}}'}}"


def _tool(task: Task) -> str:
    if task.sleep_s:
        return "rest"
    return "gather" if len(task.parents) > 1 else "step"


def _arguments(task: Task, parents: list[str]) -> str:
    values = ", ".join(f"'{{{{ {parent} }}}}'" for parent in parents)
    if task.sleep_s:
        return f"values: [{values}], sleep_s: {task.sleep_s}"
    return f"values: [{values}]" if len(parents) > 1 else f"value: {values}"
