"""Tools that stand in for others: who is called when, what is seen of it, what is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.workflow.case import WHOLE, loads, run
from tests.workflow.whole.tools import search
from weft.core.errors import BuildError, ToolRaised
from weft.core.events import Event, NodeLogged, NodeRerouted
from weft.durability.result_store import SqliteStore
from weft.testing import FakeClock, FakeTools, MemoryStore

HEAD = """\
name: case
inputs:
  topic: {type: string, default: rivers}
models:
  small: local:smollm2-135m-instruct
tools:
  main: ./tools.py:search
  spare: ./tools.py:search
  last: ./tools.py:search
"""
NODE = """\
  a:
    tool: main
    with: {query: "{{ topic }}"}
    alternatives:
      - spare
      - {tool: last, with: {query: "{{ topic }} again", limit: 1}}
"""


def broken(**_: Any) -> None:
    raise ToolRaised("it is broken")


def says(name: str) -> Any:
    return lambda query, limit=3: [{"text": f"{name} {query} {limit}"}]


def fakes(**others: Any) -> FakeTools:
    return FakeTools(**{**{name: says(name) for name in ("main", "spare", "last")}, **others})


def flow(node: str = NODE) -> weft.Flow:
    return loads(node, head=HEAD)


def test_without_a_failure_nothing_stands_in() -> None:
    tools = fakes()
    result = run(flow(), tools=tools)
    assert result.outputs["a"] == [{"text": "main rivers 3"}]
    assert [name for name, _ in tools.calls] == ["main"]
    assert result.status == "succeeded"


def test_every_reroute_is_seen_and_arguments_are_the_alternatives_own() -> None:
    events: list[Event] = []
    result = run(flow(), tools=fakes(main=broken, spare=broken), listeners=[events.append])
    assert result.outputs["a"] == [{"text": "last rivers again 1"}]
    assert result.status == "succeeded"
    assert [(e.node, e.to) for e in events if isinstance(e, NodeRerouted)] == [
        ("a", "a/spare"),
        ("a", "a/last"),
    ]
    lines = [e.text for e in events if isinstance(e, NodeLogged)]
    assert lines[0] == "reroute: main failed (ToolRaised); going by spare"
    assert [result.outcomes[node].status for node in ("a/main", "a/spare", "a/last")] == [
        "failed",
        "failed",
        "succeeded",
    ]


def test_when_all_have_failed_the_node_has() -> None:
    tools = fakes(main=broken, spare=broken, last=broken)
    result = run(flow(), tools=tools)
    failure = result.outcomes["a"].failure
    assert failure is not None
    assert failure.error == "RouteError"
    assert "last: ToolRaised: it is broken" in failure.message
    assert result.status == "failed"
    stood_in = run(flow(NODE + "    default: []\n"), tools=tools)
    assert stood_in.outputs["a"] == []
    assert stood_in.status == "succeeded"


def test_cost_decides_who_is_next() -> None:
    node = NODE.replace("- spare", "- {tool: spare, cost: 9}")
    tools = fakes(main=broken)
    assert run(flow(node), tools=tools).outputs["a"] == [{"text": "last rivers again 1"}]
    cheaper = NODE.replace("- spare", "- {tool: spare, cost: 0.5}")
    assert run(flow(cheaper), tools=fakes()).outputs["a"] == [{"text": "spare rivers 3"}]


def test_timeout_and_retry_are_for_each_call() -> None:
    async def slow(**_: Any) -> None:
        await asyncio.sleep(8.0)

    tools = fakes(main=slow, spare=slow)
    node = NODE + "    timeout: 5s\n    retry: {attempts: 2, delay: 1s, jitter: 0}\n"
    clock = FakeClock()
    result = run(flow(node), tools=tools, clock=clock)
    assert result.outputs["a"] == [{"text": "last rivers again 1"}]
    assert [name for name, _ in tools.calls] == ["main", "main", "spare", "spare", "last"]
    assert clock.now() == 22.0


def test_a_tool_that_keeps_failing_is_passed_over_within_a_run() -> None:
    node = """\
  a:
    map: "{{ numbers }}"
    width: 1
    do:
      tool: main
      with: {query: x}
      alternatives: [spare]
"""
    tools = fakes(main=broken)
    head = HEAD.replace("inputs:", "inputs:\n  numbers: [integer]")
    result = run(loads(node, head=head), tools=tools, numbers=list(range(20)))
    assert result.status == "succeeded"
    called = [name for name, _ in tools.calls]
    assert called[:2] == ["main", "spare"]
    assert called.count("spare") == 20
    assert 1 < called.count("main") < 10
    assert called[-3:] == ["spare"] * 3


def test_what_is_known_of_tools_survives(tmp_path: Path) -> None:
    def called(tools: FakeTools) -> list[str]:
        asyncio.run(remembering(tools))
        return [name for name, _ in tools.calls]

    async def remembering(tools: FakeTools) -> None:
        store = SqliteStore(tmp_path / "results.sqlite")
        result = await flow().run(tools=tools, store=store)
        await store.aclose()
        assert result.status == "succeeded"

    for _ in range(12):
        if called(fakes(main=broken))[0] != "main":
            break
    else:
        pytest.fail("it is called for ever")
    assert called(fakes()) == ["spare"]


def test_the_same_tool_with_other_arguments() -> None:
    node = NODE.replace("- spare", "- {tool: main, with: {query: second}}")

    def first_only(query: str, limit: int = 3) -> list[dict[str, str]]:
        if query != "second":
            raise ToolRaised("not this")
        return [{"text": query}]

    result = run(flow(node), tools=fakes(main=first_only))
    assert result.outputs["a"] == [{"text": "second"}]
    assert result.outcomes["a/main_2"].ok


def test_a_template_that_fails_is_a_failure_of_that_call() -> None:
    node = NODE.replace('{query: "{{ topic }}"}', '{query: "{{ topic / 2 }}"}')
    result = run(flow(node.replace("- spare", "- {tool: spare, with: {query: x}}")), tools=fakes())
    assert result.outputs["a"] == [{"text": "spare x 3"}]


def test_cached_results_need_no_call() -> None:
    tools, store = fakes(main=broken), MemoryStore()
    for _ in range(2):
        result = run(flow(NODE + "    cache: true\n"), tools=tools, store=store)
        assert result.outputs["a"] == [{"text": "spare rivers 3"}]
    assert [name for name, _ in tools.calls] == ["main", "spare"]


def test_in_python() -> None:
    @weft.tool
    def other(query: str) -> list[dict[str, str]]:
        """Find texts elsewhere."""
        return [{"text": query}]

    made = weft.Flow("case", models={"small": "local:tiny"}, folder=Path(__file__).parent / "whole")
    topic = made.input("topic", str, default="rivers")
    a = made.tool(
        search,
        topic,
        alternatives=[other, {"tool": search, "with": {"query": topic, "limit": 1}, "cost": 4}],
    )
    made.output(a=a)
    assert made.alternatives == {"a": ["other", "search"]}
    (node,) = made.document.model_dump(by_alias=True, exclude_unset=True, mode="json")[
        "nodes"
    ].values()
    assert node["alternatives"] == [
        "other",
        {"tool": "search", "with": {"query": "{{ topic }}", "limit": 1}, "cost": 4.0},
    ]
    tools = FakeTools(search=broken, other=says("other"))
    assert run(made, tools=tools).outputs["a"] == [{"text": "other rivers 3"}]


def test_alternatives_that_do_not_fit_are_refused_in_python_too() -> None:
    @weft.tool
    def count(query: str) -> int:
        """Count texts."""
        return len(query)

    made = weft.Flow("case", folder=Path(__file__).parent / "whole")
    a = made.tool(search, query="x", alternatives=[count])
    made.output(a=a)
    with pytest.raises(BuildError, match="cannot stand in for `search`"):
        made.check()


def test_drawings_show_them() -> None:
    assert 'n_a["a<br/>tool<br/>or spare, last"]' in flow().mermaid()
    (node,) = flow().graph_view().nodes
    assert node.alternatives == ("spare", "last")


def test_limits_of_a_tool_hold_for_it_wherever_it_stands() -> None:
    running: list[str] = []
    most: dict[str, int] = {}

    def counted(name: str, error: Exception | None = None) -> Any:
        async def work(query: str, limit: int = 3) -> list[dict[str, str]]:
            running.append(name)
            most[name] = max(most.get(name, 0), running.count(name))
            await asyncio.sleep(1.0)
            running.remove(name)
            if error is not None:
                raise error
            return []

        return work

    node = """\
  a:
    map: "{{ numbers }}"
    do: {tool: main, with: {query: x}, alternatives: [spare]}
"""
    head = HEAD.replace("inputs:", "inputs:\n  numbers: [integer]").replace(
        "tools:", "run: {limits: {main: 2, spare: 3}}\ntools:"
    )
    tools = fakes(main=counted("main", ToolRaised("no")), spare=counted("spare"))
    for concurrency in (None, 1, 4):
        most.clear()
        result = run(loads(node, head=head), tools=tools, numbers=[1] * 6, concurrency=concurrency)
        assert result.status == "succeeded"
        assert most == {name: min(most[name], limit) for name, limit in (("main", 2), ("spare", 3))}


def test_inside_a_workflow_that_is_included(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text((WHOLE / "tools.py").read_text("utf-8"), "utf-8")
    (tmp_path / "part.yaml").write_text(
        HEAD.replace("name: case", "name: part").replace(
            "models:\n  small: local:smollm2-135m-instruct\n", ""
        )
        + f"nodes:\n{NODE}outputs:\n  found: '{{{{ a }}}}'\n",
        "utf-8",
    )
    (tmp_path / "whole.yaml").write_text(
        "name: whole\nnodes:\n  b: {workflow: ./part.yaml, with: {topic: seas}}\n"
        "outputs: {found: '{{ b.found }}'}\n",
        "utf-8",
    )
    whole = weft.load(tmp_path / "whole.yaml")
    events: list[Event] = []
    clock = FakeClock()
    result = clock.run(whole.run(tools=fakes(main=broken), clock=clock, listeners=[events.append]))
    assert result.outputs["found"] == [{"text": "spare seas 3"}]
    assert [e.to for e in events if isinstance(e, NodeRerouted)] == ["b/a/spare"]
