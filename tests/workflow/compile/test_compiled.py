"""A workflow is read, checked, compiled and written down once, however often it runs."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.workflow.case import WHOLE
from weft.core.errors import BuildError
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.engine.graph import graph as graphs
from weft.testing import FakeModel, FakeTools, MemoryJournal, MemoryStore
from weft.workflow.compile import node_plan, sources
from weft.workflow.document import loader, references
from weft.workflow.document.check import types
from weft.workflow.runtime import compiled

_TOOLS = """\
import weft

@weft.tool(effect="pure")
async def double(x: int) -> int:
    return {factor} * x
"""
_FLOW = """\
name: case
inputs:
  start: {type: integer, default: 1}
  items: {type: array, default: [1, 2]}
tools:
  double: ./tools.py:double
nodes:
  first: {tool: double, with: {x: "{{ start }}"}}
  second: {tool: double, with: {x: "{{ first }}"}}
  each:
    map: "{{ items }}"
    do: {tool: double, with: {x: "{{ item }}"}}
  part: {workflow: part.yaml, with: {x: "{{ second }}"}}
outputs:
  a: "{{ part.y }}"
  b: "{{ each }}"
"""
_PART = """\
name: part
inputs: {x: integer}
tools: {double: "./tools.py:double"}
nodes:
  y: {tool: double, with: {x: "{{ x }}"}}
outputs: {y: "{{ y }}"}
"""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each part of the way from a text to a graph was gone."""
    found: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        whole: Callable[..., Any] = getattr(owner, name)

        def counting(*args: Any, **named: Any) -> Any:
            found[name] += 1
            return whole(*args, **named)

        monkeypatch.setattr(owner, name, counting)

    count(loader, "_parse")
    count(loader, "check_references")
    count(references, "template_uses")
    count(types.TypeChecker, "check")
    count(node_plan.NodePlans, "_plan")
    count(node_plan, "identity_of")
    count(graphs, "check")
    count(sources, "to_yaml")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(_TOOLS.format(factor=2))
    (tmp_path / "case.yaml").write_text(_FLOW)
    (tmp_path / "part.yaml").write_text(_PART)
    return tmp_path


def digest_of(journal: MemoryJournal, number: int) -> str:
    """What stands for the tool in the record of the latest run but `number`."""
    return journal.header(journal.runs()[number].run).document["tools.py:double"]


@pytest.mark.parametrize("journal", [None, MemoryJournal()], ids=["unrecorded", "recorded"])
def test_a_second_run_of_a_file_pays_for_nothing_but_its_inputs(
    folder: Path, counts: Counter[str], journal: MemoryJournal | None
) -> None:
    flow = weft.load(folder / "case.yaml")
    durability = "none" if journal is None else "sync"
    settings: dict[str, Any] = {"journal": journal, "durability": durability}
    assert flow.run_sync(**settings).outputs == {"a": 8, "b": [2, 4]}
    assert counts["_parse"] == counts["check_references"] == 2
    assert counts["check"] == 3  # types of both documents, and the graph
    assert counts["_plan"] == 6
    counts.clear()
    assert flow.run_sync(start=2, items=[5], **settings).outputs == {"a": 16, "b": [10]}
    assert flow.run_sync(start=3, items=[], **settings).outputs == {"a": 24, "b": []}
    assert not counts


def test_a_second_run_of_a_program_pays_for_nothing_but_its_inputs(counts: Counter[str]) -> None:
    async def twice(x: int) -> int:
        return 2 * x

    journal = MemoryJournal()
    flow = weft.Flow("sums")
    start = flow.input("start", int)
    first = flow.tool(twice, x=start)
    flow.output(o=flow.tool(twice, x=first))
    assert flow.run_sync(start=1, journal=journal)["o"] == 4
    assert counts["to_yaml"] == counts["check_references"] + 1 == 1
    counts.clear()
    assert flow.run_sync(start=2, journal=journal)["o"] == 8
    assert not counts
    documents = [journal.header(one.run).document for one in journal.runs()]
    assert documents[0] == documents[1] != {}


def test_a_node_that_is_added_after_a_run_is_seen() -> None:
    flow = weft.Flow("grows")
    one = flow.value(1)
    flow.output(one=one)
    assert flow.run_sync(durability="none").outputs == {"one": 1}
    flow.output(two=flow.value(f"{one}2"))
    assert flow.run_sync(durability="none").outputs == {"one": 1, "two": "12"}


def test_changed_code_of_a_tool_is_noticed(folder: Path, counts: Counter[str]) -> None:
    journal = MemoryJournal()
    flow = weft.load(folder / "case.yaml")
    flow.run_sync(journal=journal)
    flow.run_sync(journal=journal)
    assert digest_of(journal, 0) == digest_of(journal, 1)
    counts.clear()
    (folder / "tools.py").write_text(_TOOLS.format(factor=3))
    flow.run_sync(journal=journal)
    assert digest_of(journal, 0) != digest_of(journal, 1)
    assert counts["identity_of"] > 0  # nodes of other code are other nodes
    counts.clear()
    (folder / "tools.py").write_text(_TOOLS.format(factor=2))
    flow.run_sync(journal=journal)
    assert digest_of(journal, 0) == digest_of(journal, 2)
    assert not counts  # that form is still there


def test_a_cached_result_of_other_code_is_not_used(folder: Path) -> None:
    text = _FLOW.replace('with: {x: "{{ start }}"}', 'with: {x: "{{ start }}"}, cache: true')
    flow = weft.loads(text, str(folder / "case.yaml"))
    found, store = [], MemoryStore()
    for factor in (2, 2, 3):
        (folder / "tools.py").write_text(_TOOLS.format(factor=factor))
        result = flow.run_sync(durability="none", store=store)
        found.append(result.outcomes[NodeId("first")].via)
    assert found == ["", "cache", ""]


def test_tools_of_a_run_are_not_those_of_the_next(folder: Path) -> None:
    async def double(x: int) -> int:
        return -x

    flow = weft.load(folder / "case.yaml")
    found = [
        flow.run_sync(durability="none", tools=tools)["b"]
        for tools in (None, FakeTools(double=double), None)
    ]
    assert found == [[2, 4], [-1, -2], [2, 4]]


def test_a_tool_that_takes_other_arguments_is_checked_anew(folder: Path) -> None:
    async def double(y: int) -> int:
        return y

    flow = weft.load(folder / "case.yaml")
    flow.check()
    with pytest.raises(BuildError, match="`x`"):
        flow.check(tools=weft.Toolbox(weft.tool(double)))
    flow.check()


def test_so_many_forms_are_kept(folder: Path) -> None:
    flow = weft.load(folder / "case.yaml")
    for number in range(2 * compiled._MOST_FORMS):

        async def double(x: int, more: int = number) -> int:
            return x + more

        flow.check(tools=weft.Toolbox(weft.tool(double)))
    assert len(flow.unit.memo.checked) == compiled._MOST_FORMS


def test_a_default_that_is_a_list_is_nobody_elses() -> None:
    flow = weft.loads(
        "name: case\n"
        "nodes:\n"
        "  zero: {value: 0}\n"
        "  a: {value: '{{ 1 / zero }}', default: [1]}\n"
        "  b: {value: '{{ 1 / zero }}', default: 2}\n"
        "outputs: {a: '{{ a }}', b: '{{ b }}'}\n"
    )
    first = flow.run_sync(durability="none")
    first["a"].append(2)
    assert flow.run_sync(durability="none").outputs == {"a": [1], "b": 2}


def test_what_stands_in_sees_the_inputs_of_its_own_run() -> None:
    flow = weft.loads(
        "name: case\n"
        "inputs: {x: integer}\n"
        "nodes:\n"
        "  zero: {value: 0}\n"
        "  a: {value: '{{ 1 / zero }}', fallback: b}\n"
        "  b: {value: '{{ x }}'}\n"
        "  c: {value: '{{ 1 / zero }}', default: '{{ x }}'}\n"
        "  d: {join: [a, c], mode: first_valid, valid: '{{ value == x }}'}\n"
        "outputs: {a: '{{ a }}', c: '{{ c }}', d: '{{ d }}'}\n"
    )
    for x in (1, 2):
        assert flow.run_sync(x=x, durability="none").outputs == {"a": x, "c": x, "d": x}


def test_runs_beside_each_other_have_their_own_inputs_and_models() -> None:
    flow = weft.loads(
        "name: case\n"
        "inputs: {x: string}\n"
        "models: {small: 'local:smollm2-135m-instruct'}\n"
        "nodes:\n"
        "  a: {model: small, prompt: '{{ x }}'}\n"
        "  b: {model: small, prompt: 'after {{ a }}'}\n"
        "outputs: {b: '{{ b }}'}\n"
    )

    def named(name: str) -> FakeModel:
        def answer(request: ModelRequest) -> str:
            return f"{name}({request.messages[-1].content})"

        return FakeModel(answer)

    async def main() -> list[str]:
        async with asyncio.TaskGroup() as tasks:
            runs = [
                tasks.create_task(flow.run(x=str(n), models={"small": named(f"m{n}")}))
                for n in range(5)
            ]
        return [run.result()["b"] for run in runs]

    assert asyncio.run(main()) == [f"m{n}(after m{n}({n}))" for n in range(5)]


def test_the_inputs_of_a_run_are_let_go_of() -> None:
    class Thing(list[int]):
        """A value that can be watched."""

    flow = weft.Flow("case")
    flow.output(o=flow.value(flow.input("thing", list)))

    def run() -> weakref.ref[Thing]:
        thing = Thing([1])
        assert flow.run_sync(thing=thing, durability="none")["o"] == [1]
        return weakref.ref(thing)

    gone = run()
    gc.collect()
    assert gone() is None


def test_the_whole_document_of_the_tests_runs_twice_alike(counts: Counter[str]) -> None:
    flow = weft.load(WHOLE / "everything.yaml")
    flow.check()
    counts.clear()
    flow.check()
    assert not counts


@pytest.mark.slow
def test_a_file_of_ten_thousand_nodes(tmp_path: Path, counts: Counter[str]) -> None:
    size = 10_000
    (tmp_path / "tools.py").write_text(_TOOLS.format(factor=1))
    lines = [f"  n{n}: {{tool: double, with: {{x: '{{{{ n{n - 1} }}}}'}}}}" for n in range(1, size)]
    text = "\n".join(
        [
            "name: large",
            "inputs: {x: integer}",
            "tools: {double: './tools.py:double'}",
            "nodes:",
            "  n0: {tool: double, with: {x: '{{ x }}'}}",
            *lines,
            f"outputs: {{o: '{{{{ n{size - 1} }}}}'}}",
        ]
    )
    (tmp_path / "large.yaml").write_text(text)
    flow = weft.load(tmp_path / "large.yaml")
    flow.start({"x": 1}, durability="none")
    assert counts["_plan"] == size
    assert counts["template_uses"] <= 2 * size
    counts.clear()
    assert flow.run_sync(x=2, durability="none")["o"] == 2
    assert not counts
