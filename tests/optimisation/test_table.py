"""Outcome tables: what an edit leaves as it was costs nothing, and no value differs for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

import weft
from tests.optimisation.edits.flows import TEXT, echo
from tests.optimisation.programs import ProgramWriter, function_model, random_edit
from weft.core.ports import ModelRequest
from weft.core.values import Usage
from weft.durability.result_store import SqliteStore
from weft.errors import BuildError, ModelUnavailable
from weft.optimisation.edits import Patch, SetModel, SetPrompt, SetSchemaOrder, document_digest
from weft.optimisation.edits.error import EditError
from weft.optimisation.edits.patch import AnyFlow
from weft.optimisation.table import OutcomeTable, TableRun
from weft.testing import FakeModel, FakeTools, Reply


def run(table: OutcomeTable, flow: AnyFlow, model: FakeModel, **settings: Any) -> TableRun:
    clients = dict.fromkeys(flow.document.models, model)
    inputs = dict.fromkeys(flow.inputs, "topic")
    return asyncio.run(table.run(flow, inputs, models=clients, **settings))


def test_only_the_cone_of_an_edit_runs() -> None:
    flow, table, model = weft.loads(TEXT), OutcomeTable(), echo()
    first = run(table, flow, model)
    assert first.spent.requests == 7  # both items of the map have the same introduction
    assert (first.reused, first.whole.requests) == (1, 8)
    edit = SetPrompt(node="notes/note", prompt="Write {{ item }} {{ intro }}")
    second = run(table, Patch((edit,)).apply(flow), model)
    names = {node.partition("[")[0] for node in second.fresh}
    assert names == {"notes", "short", "answer", "rating"}
    assert (len(second.fresh), second.reused) == (6, 2)
    assert second.whole.requests == 8
    third = run(table, flow, model)
    assert (third.fresh, third.spent, third.whole.requests) == ((), Usage(), 8)
    assert third.result.outputs == first.result.outputs
    assert first.spent.requests + second.spent.requests == len(model.requests)


def test_where_a_value_comes_out_equal_nothing_after_it_runs() -> None:
    flow, table, model = weft.loads(TEXT), OutcomeTable(), echo()
    run(table, flow, model)
    edits = (SetModel(node="answer", model="big"), SetSchemaOrder(node="answer", order=["why"]))
    for edit in edits:  # another answer each time, with the same content
        assert run(table, Patch((edit,)).apply(flow), model).fresh == ("answer",)


def test_seeds_replicates_and_clients_have_results_of_their_own() -> None:
    flow, table, model = weft.loads(TEXT), OutcomeTable(), echo()
    seeds = set()
    for settings in ({}, {"replicate": 1}, {"replicate": 2}, {"seed": 7}):
        assert run(table, flow, model, **settings).spent.requests == 7
        seeds.add(model.requests[-1].sampling.seed)
        assert not run(table, flow, model, **settings).fresh
    assert len(seeds) == 4
    assert run(table, flow, model, seeded=False).spent.requests == 7
    assert model.requests[-1].sampling.seed is None
    other = FakeModel(lambda _: {"answer": "no", "why": "no"}, model="other")
    assert run(table, flow, other).spent.requests == 6  # equal notes are shortened once


def test_runs_at_the_same_time_share_what_they_compute() -> None:
    flow, table, model = weft.loads(TEXT), OutcomeTable(), echo()

    async def both() -> list[TableRun]:
        clients = {"small": model}
        async with asyncio.TaskGroup() as group:
            started = [
                group.create_task(table.run(flow, {"topic": "x"}, models=clients)) for _ in range(5)
            ]
        return [task.result() for task in started]

    runs = asyncio.run(both())
    assert len(model.requests) == 7
    assert sum(each.spent.requests for each in runs) == 7
    assert len({str(each.result.outputs) for each in runs}) == 1


def test_a_run_that_is_cancelled_leaves_its_results_to_others() -> None:
    flow, table = weft.loads(TEXT), OutcomeTable()

    async def cancelled() -> TableRun:
        stuck = FakeModel(lambda _: Reply("late", first_token_s=1_000))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await table.run(flow, {"topic": "x"}, models={"small": stuck})
        assert stuck.requests
        other = echo()
        return await table.run(flow, {"topic": "x"}, models={"small": other})

    assert asyncio.run(cancelled()).spent.requests == 7


def two_equal_nodes(retry: str) -> weft.Flow:
    return weft.loads(
        f"{{name: f, models: {{m: local:t}}, nodes: {{a: {{model: m, prompt: x, {retry}}},"
        f" b: {{model: m, prompt: x, {retry}}}}}, outputs: {{a: '{{{{ a }}}}', b: '{{{{ b }}}}'}}}}"
    )


def test_a_failure_is_not_stored() -> None:
    flow, table = two_equal_nodes("retry: {attempts: 1}"), OutcomeTable()
    down = FakeModel(lambda _: Reply("", error=ModelUnavailable("down")))
    failed = run(table, flow, down)
    assert failed.result.status == "failed"
    assert len(down.requests) == 2  # the second node asks once the first has failed
    assert run(table, flow, FakeModel(["one"])).result.outputs == {"a": "one", "b": "one"}


def test_a_second_attempt_does_not_wait_for_the_first() -> None:
    flow, table = two_equal_nodes("retry: {attempts: 3, delay: 0s}"), OutcomeTable()
    model = FakeModel([Reply("", error=ModelUnavailable("down")), "one"])
    found = run(table, flow, model)
    assert found.result.outputs == {"a": "one", "b": "one"}
    assert len(model.requests) == 2
    assert not run(table, flow, model).fresh


def test_results_and_their_costs_outlive_the_process(tmp_path: Path) -> None:
    flow, model = weft.loads(TEXT), echo()

    def again() -> TableRun:
        store = SqliteStore(tmp_path / "table.sqlite")
        found = run(OutcomeTable(store), flow, model)
        asyncio.run(store.aclose())
        return found

    assert again().spent.requests == 7
    found = again()
    assert (found.fresh, found.whole.requests, found.spent) == ((), 8, Usage())
    assert found.whole.tokens > 8


_TOOLS = """
import weft

@weft.tool(effect="{effect}")
def act(x: str) -> str:
    raise AssertionError("a study must not call it")
"""


@pytest.mark.parametrize("effect", ["once", "unknown"])
def test_tools_that_may_act_are_refused_without_a_stub(effect: str, tmp_path: Path) -> None:
    (tmp_path / "acting.py").write_text(_TOOLS.replace("{effect}", effect))
    file = tmp_path / "f.yaml"
    file.write_text(
        "{name: f, nodes: {a: {tool: './acting.py:act', with: {x: y}}}, outputs: {a: '{{ a }}'}}"
    )
    flow, table = weft.load(file), OutcomeTable()
    with pytest.raises(BuildError, match=f"effect of `./acting.py:act` is {effect}") as caught:
        run(table, flow, echo())
    assert caught.value.node == "a"
    stubs = FakeTools(act=lambda x: f"stub {x}")
    assert run(table, flow, echo(), stubs=stubs).result["a"] == "stub y"


def ratio(programs: int, seed: int, classes: int, *, calls_only: bool = True) -> float:
    """Calls of edited programs with the table, over those without; all values are bit-equal."""
    random, fresh, whole, found = Random(seed), 0, 0, 0
    while found < programs:
        flow = ProgramWriter(random).flow(8, calls_only=calls_only)
        try:
            patched = Patch.of([random_edit(random, flow)]).apply(flow)
        except EditError:
            continue
        if document_digest(patched.document) == document_digest(flow.document):
            continue
        clients = {name: function_model(classes, name) for name in ("small", "big")}
        before, after, alone = asyncio.run(_three(flow, patched, clients))
        assert after.result.outputs == alone.outputs
        values = {node: outcome.value for node, outcome in alone.outcomes.items()}
        found_values = after.result.outcomes.items()
        assert {n: o.value for n, o in found_values if n in values} == {
            n: v for n, v in values.items() if n in after.result.outcomes
        }
        fresh += after.spent.requests
        calls = sum(len(client.requests) for client in clients.values())
        whole += calls - before.spent.requests - after.spent.requests
        found += 1
    return fresh / whole


async def _three(flow: AnyFlow, patched: AnyFlow, clients: dict[str, FakeModel]) -> Any:
    table = OutcomeTable()
    before = await table.run(flow, {"x": "topic"}, models=clients, seeded=False)
    after = await table.run(patched, {"x": "topic"}, models=clients, seeded=False)
    return before, after, await patched.run(x="topic", models=clients)


def test_one_edit_of_eight_nodes_costs_few_calls() -> None:
    assert ratio(20, seed=7, classes=3) <= 0.4


@pytest.mark.slow
@pytest.mark.parametrize("classes", [0, 3])
def test_one_edit_of_eight_nodes_in_a_thousand_programs(classes: int) -> None:
    """A model with few answers gives equal ones now and then, where the cone ends; the other never
    does: its ratio is above the demand of 0.35, and no cache would bring it down (see below).
    """
    found = ratio(1_000, seed=7, classes=classes)
    print(f"classes {classes}: {found:.3f}")
    assert found <= (0.35 if classes else 0.4)


def test_no_call_is_fresh_that_was_made_before() -> None:
    """The oracle is the set of requests: what an edited program asks that the first one did not."""
    random, found = Random(11), 0
    while found < 30:
        flow = ProgramWriter(random).flow(8, calls_only=True)
        try:
            patched = Patch.of([random_edit(random, flow)]).apply(flow)
        except EditError:
            continue
        before, after, alone = asyncio.run(_requests(flow, patched))
        assert len(after) == len(set(alone) - set(before))
        found += 1


async def _requests(flow: AnyFlow, patched: AnyFlow) -> list[list[str]]:
    """What is asked by the first program, by the edited one with the table, and by it alone."""
    table, asked = OutcomeTable(), []
    for program, own in ((flow, table), (patched, table), (patched, OutcomeTable())):
        clients = {name: function_model(0, name) for name in ("small", "big")}
        await own.run(program, {"x": "topic"}, models=clients, seeded=False)
        asked.append([f"{n} {_content(each)}" for n, c in clients.items() for each in c.requests])
    return asked


def _content(request: ModelRequest) -> object:
    sampling = request.sampling
    own = (sampling.seed, sampling.temperature, sampling.max_tokens)
    return request.messages, request.schema, own
