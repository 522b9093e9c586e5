"""`on:` at maps and included workflows: which pool the calls inside get, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from tests.cli.command_line import go_into, typed
from tests.cluster.fake_cluster import FakeCluster, Placed, call
from weft.core.ids import RunId
from weft.errors import BuildError, PlacementError, SourceError
from weft.testing import MemoryJournal, ScriptedAgent, call_tool


def test_the_innermost_pool_holds_and_a_tool_that_names_one_keeps_it(cluster: FakeCluster) -> None:
    block = {
        "here": call(1),
        "inner": {"map": [2, 3], "as": "n", "on": "big", "do": call("{{ n }}")},
        "near": {"map": [4], "as": "n", "on": "local", "do": call("{{ n }}")},
        "tool": call(5, "own"),
        "case": {"branch": "x", "cases": {"x": call(6)}},
        "round": {"loop": call(7), "until": "{{ true }}", "max": 2},
        "other": {**call(8), "alternatives": ["own"]},
        "approved": call(9, approve=False),
    }
    result = "{{ [here, inner, near, tool, case, round, other, approved] }}"
    outer = {"map": [0], "on": "gpu", "do": {"nodes": block, "result": result}}
    flow = cluster.flow({"outer": outer, "beside": call(10)})
    ended = flow.run_sync(on=cluster.ray)
    assert ended.outputs == {"outer": [[1, [2, 3], [4], 5, 6, 7, 8, 9]], "beside": 10}
    assert cluster.placed() == {"default": [10], "gpu": [1, 6, 7, 8, 9], "big": [2, 3, 5]}
    assert flow.run_sync(on="local").outputs == ended.outputs
    assert cluster.placed() == {}


def test_a_workflow_runs_where_each_node_that_includes_it_says(cluster: FakeCluster) -> None:
    part = {"each": {"map": "{{ numbers }}", "do": call("{{ item }}")}, "own": call(0, "own")}
    cluster.flow(part, "part.yaml", inputs={"numbers": {"type": "array"}})
    used = {"workflow": "./part.yaml"}
    flow = cluster.flow(
        {
            "a": {**used, "with": {"numbers": [1, 2]}, "on": "gpu"},
            "b": {**used, "with": {"numbers": [3]}, "on": "big"},
            "c": {**used, "with": {"numbers": [4]}},
            "d": {"map": [5], "on": "gpu", "do": {**used, "with": {"numbers": ["{{ item }}"]}}},
        }
    )
    assert flow.run_sync(on=cluster.ray).status == "succeeded"
    assert cluster.placed() == {"default": [4], "gpu": [1, 2, 5], "big": [0] * 4 + [3]}


def test_the_calls_of_an_agent_run_there_and_the_model_stays(cluster: FakeCluster) -> None:
    agent = ScriptedAgent([[call_tool("note", n=3), call_tool("own", n=4)], "done"])
    node = {"model": "m", "prompt": "go", "tools": ["note", "own"], "agent": "parallel-react"}
    models = {"m": {"use": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}}
    flow = cluster.flow({"a": {"map": [1], "on": "gpu", "do": node}}, models=models)
    ended = flow.run_sync(on=cluster.ray, models={"m": agent})
    assert ended.outputs == {"a": ["done"]}
    assert cluster.placed() == {"gpu": [3], "big": [4]}


def test_a_flow_in_python_says_it_too(cluster: FakeCluster) -> None:
    part = weft.Flow("part", folder=cluster.folder)
    part.output(n=part.tool("./tools.py:note", n=part.input("n", int)))
    flow = weft.Flow("whole", folder=cluster.folder)
    each = flow.map([1, 2], lambda n: flow.tool("./tools.py:note", n=n), on="gpu")
    flow.output(each=each, part=flow.workflow(part, n=3, on="big").n)
    again = flow.options(retry=1).workflow(part, n=4, on="gpu")
    flow.output(again=again.n)
    flow.check()
    ended = flow.run_sync(on=cluster.ray)
    assert ended.outputs == {"each": [1, 2], "part": 3, "again": 4}
    assert cluster.placed() == {"gpu": [1, 2, 4], "big": [3]}
    with pytest.raises(BuildError, match="the map each is to run on the pool gpu, without"):
        flow.run_sync()
    with pytest.raises(BuildError, match="`on` names a pool") as raised:
        flow.workflow(part, n=3, on=each)
    assert "args" in str(raised.value.hint)


@pytest.mark.parametrize("begins_there", [True, False])
def test_a_run_on_a_cluster_goes_on_without_one_and_the_other_way_round(
    cluster: FakeCluster, begins_there: bool
) -> None:
    nodes = {
        "first": {"map": [1, 2], "on": "gpu", "do": call("{{ item }}")},
        "asked": {"ask": "go on?", "after": ["first"]},
        "then": {"map": [3], "on": "gpu", "do": call("{{ item }}"), "after": ["asked"]},
    }
    flow = cluster.flow(nodes)
    journal = MemoryJournal()
    near, far = {"on": "local"}, {"on": cluster.ray}
    first, then = (far, near) if begins_there else (near, far)
    begun = flow.run_sync(run="r", journal=journal, **first)
    assert begun.status == "asking"
    assert cluster.placed() == ({"gpu": [1, 2]} if begins_there else {})
    given = {"journal": journal, "answers": {"asked": "yes"}, **then}
    ended = asyncio.run(flow.resume("r", **given).wait())
    assert ended.outputs == {"first": [1, 2], "asked": "yes", "then": [3]}
    assert cluster.placed() == ({} if begins_there else {"gpu": [3]})


# -- random programs -------------------------------------------------------------------------------

PLACES = st.sampled_from([None, "gpu", "big", "local"])


@st.composite
def programs(draw: st.DrawFn) -> tuple[dict[str, Any], Placed]:
    """A block of nodes with maps in maps, and the numbers that each pool's tools get."""
    numbers = iter(range(1_000))
    placed: Placed = {}

    def block(depth: int, around: str) -> dict[str, Any]:
        made = [node(depth, around) for _ in range(draw(st.integers(1, 3)))]
        return {f"n{depth}_{place}": each for place, each in enumerate(made)}

    def node(depth: int, around: str) -> dict[str, Any]:
        kind = draw(st.sampled_from(["call", "own", "map", "branch"] if depth < 3 else ["call"]))
        if kind in ("call", "own"):
            number = next(numbers)
            placed.setdefault("big" if kind == "own" else around, []).append(number)
            return call(number, "own" if kind == "own" else "note")
        if kind == "branch":
            nodes = block(depth + 1, around)
            return {"branch": "x", "cases": {"x": {"nodes": nodes, "result": 0}}}
        on = draw(PLACES)
        nodes = block(depth + 1, on or around)
        body = {"as": f"i{depth}", "do": {"nodes": nodes, "result": 0}}
        return {"map": [0], **body, **({"on": on} if on else {})}

    nodes = block(0, "default")
    placed.pop("local", None)
    return nodes, {pool: sorted(numbers) for pool, numbers in placed.items()}


@given(programs())
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_programs_run_where_they_say(
    cluster: FakeCluster, program: tuple[dict[str, Any], Placed]
) -> None:
    nodes, expected = program
    flow = cluster.flow(nodes)
    ended = flow.run_sync(on=cluster.ray, durability="none")
    assert ended.status == "succeeded"
    assert cluster.placed() == expected


# -- what is refused -------------------------------------------------------------------------------

WITHOUT = "the map each is to run on the pool gpu, without a cluster"
RAY = {"on": "ray", "pools": {"gpus": {}}}


@pytest.mark.parametrize(
    ("run", "options", "message"),
    [
        ({}, [], WITHOUT),
        ({}, ["--on", "local"], None),
        ({}, ["--on", "ray"], "there is no pool 'gpu'"),
        ({"pools": {"gpu": {}}}, [], WITHOUT),
        ({"pools": {"gpu": {}}}, ["--on", "ray"], None),
        (RAY, [], "did you mean 'gpus'?"),
        (RAY, ["--on", "local"], None),
    ],
)
def test_check_and_run_name_the_place(
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    run: dict[str, Any],
    options: list[str],
    message: str | None,
) -> None:
    go_into(cluster.folder, monkeypatch)
    text = f"""name: placed
tools: {{note: "./tools.py:note"}}
run: {json.dumps(run)}
nodes:
  each:
    map: [1]
    on: gpu
    do: {{tool: note, with: {{n: 1}}}}
outputs: {{each: "{{{{ each }}}}"}}
"""
    (cluster.folder / "flow.yaml").write_text(text, "utf-8")
    for command in ("check", "run"):
        ended = typed(command, "flow.yaml", *options)
        assert ended.exit_code == (2 if message else 0), ended.output
        if message:
            assert "flow.yaml:7:9" in ended.output
            assert message in ended.output


def test_a_run_that_is_refused_leaves_its_id(cluster: FakeCluster) -> None:
    flow = cluster.flow({"each": {"map": [1], "on": "gpu", "do": call(1)}})
    journal = MemoryJournal()
    cluster.workers.labels["gpu"] = ()
    for _ in range(2):
        with pytest.raises(PlacementError, match="no node of the cluster has the label gpu"):
            flow.run_sync(on=cluster.ray, run="nightly", journal=journal)
        assert not journal.runs()
    cluster.workers.labels["gpu"] = ("gpu",)
    ended = flow.run_sync(on=cluster.ray, run="nightly", journal=journal)
    assert ended.outputs == {"each": [1]}
    assert [run.run for run in journal.runs()] == ["nightly"]


def test_a_recorded_run_that_is_refused_to_go_on_stays(cluster: FakeCluster) -> None:
    nodes = {"asked": {"ask": "go on?"}, "then": {**call(1), "after": ["asked"]}}
    flow = cluster.flow({"each": {"map": [1], "on": "gpu", "do": {"nodes": nodes, "result": 1}}})
    journal = MemoryJournal()
    flow.run_sync(on="local", run="r", journal=journal)
    before = journal.summary(RunId("r")).records
    cluster.workers.labels["gpu"] = ()
    with pytest.raises(PlacementError):
        asyncio.run(flow.resume("r", journal=journal, on=cluster.ray).wait())
    assert journal.summary(RunId("r")).records == before > 0


def refused(flow: weft.Flow, act: Callable[[], object]) -> SourceError:
    with pytest.raises(SourceError) as raised:
        act()
    return raised.value


def test_a_pool_in_an_included_file_is_refused_there(cluster: FakeCluster) -> None:
    cluster.flow({"each": {"map": [1], "on": "gpux", "do": call(1)}}, "part.yaml")
    flow = cluster.flow({"part": {"workflow": "./part.yaml"}})
    error = refused(flow, lambda: flow.run_sync(on=cluster.ray))
    assert Path(error.file).name == "part.yaml"
    assert "gpux" in error.message
    flow.check()  # it declares no cluster: Python may give one


def test_a_tool_that_no_worker_can_import_is_refused_at_its_node(cluster: FakeCluster) -> None:
    flow = weft.Flow("closed")

    @weft.tool
    def here() -> int:
        return 1

    flow.output(all=flow.map([1], lambda _: flow.tool(here), on="gpu"))
    ray = weft.Ray("127.0.0.99:1", pools={"gpu": {}})
    with pytest.raises(BuildError, match="here cannot run on a cluster"):
        flow.run_sync(on=ray)
    assert flow.run_sync(on="local").outputs == {"all": [1]}
    beside = weft.Flow("beside")
    beside.output(all=beside.map([1], lambda _: beside.tool(here), on="local"))
    assert beside.run_sync(on=ray).outputs == {"all": [1]}


@pytest.mark.parametrize("on", ["a b", 3])
def test_a_pool_has_a_name(cluster: FakeCluster, on: object) -> None:
    with pytest.raises(BuildError):
        cluster.flow({"each": {"map": [1], "on": on, "do": call(1)}})
