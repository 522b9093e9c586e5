"""A repetition comes to what the record has, to the last bit; what does not is told."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.profile import examples
from tests.workflow.case import WHOLE, loads
from tests.workflow.history.programs import programs
from tests.workflow.history.recorded_runs import House, ended
from weft.core.errors import BuildError, ModelUnavailable, ToolRaised
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.core.ports.journal import Letter
from weft.testing import MemoryStore, Reply
from weft.workflow import FlowRun
from weft.workflow.history.replay import RunReplay, replay
from weft.workflow.history.run_history import RunHistory


def again(house: House, flow: weft.Flow, **more: Any) -> RunReplay:
    """Repeat the latest run; the house's models and tools are not there."""
    house.script = None  # type: ignore[assignment]
    house.tools = {}
    return replay(house.story(), flow.unit, **more)


def test_what_somebody_cancelled_is_cancelled_again() -> None:
    nodes = """\
  one: {model: small, prompt: "one", on_failure: skip}
  all:
    map: [a, b, c]
    mode: best_effort
    otherwise: none
    do: {model: small, prompt: "{{ item }}"}
  end: {model: small, prompt: "end of {{ all | length }}"}"""
    house = House(lambda _: Reply("said", first_token_s=1.0, per_token_s=0.0))
    flow = loads(nodes, 'a: "{{ end }}"')

    def start() -> FlowRun:
        run = flow.start({}, **house.settings())
        for node in ("one", "all[1]"):
            house.journal.send(run.id, Letter("cancel", NodeId(node), "nobody wants it"))
        return run

    assert house.wait(start).status == "partial"
    assert ended(house.story())[NodeId("all[1]")] == "cancelled"
    found = again(house, flow)
    assert found.ok, found.report()
    assert found.result.status == "partial"


def written(request: ModelRequest) -> Reply:
    text = '{"title": "T", "score": 3}' if request.schema else "river text"
    return Reply(text, first_token_s=0.5, per_token_s=0.25)


def test_one_of_everything() -> None:
    async def words(text: str) -> int:
        await asyncio.sleep(0.5)
        return len(text.split())

    house, flow = House(written, words=words), weft.load(WHOLE / "everything.yaml")
    settings = house.settings
    house.settings = lambda **more: settings(  # type: ignore[method-assign]
        **{"store": MemoryStore(house.clock), **more}
    )
    result = house.wait(
        lambda: flow.start(
            {"topic": "rivers", "tags": ["a", "b"]},
            **{**house.settings(), "models": dict.fromkeys(("small", "big"), _model(house))},
        ),
        {"ok": True},
    )
    assert result.ok, result
    found = again(house, flow)
    assert found.ok, found.report()
    assert found.identical == len(result.outcomes)
    assert found.result.outputs == result.outputs
    assert house.clock.now() > 1


def _model(house: House) -> Any:
    return house.settings()["models"]["small"]


def test_failures_retries_and_stand_ins() -> None:
    calls = iter([ModelUnavailable("one"), ModelUnavailable("two")])

    def script(_: ModelRequest) -> Reply:
        error = next(calls, None)
        return Reply("there", error=error) if error is None else Reply(error=error)

    async def broken(query: str) -> str:
        raise ToolRaised(f"no {query}")

    nodes = """\
  a: {model: small, prompt: "x", retry: {attempts: 3, delay: 2s}}
  b: {tool: search, with: {query: y}, default: none, retry: 2}
  c: {tool: search, with: {query: z}, on_failure: skip}"""
    house, flow = House(script, search=broken), loads(nodes, 'a: "{{ a }} {{ b }}"')
    result = house.run(flow)
    assert result.outcomes["a"].attempts == 3  # type: ignore[index]
    found = again(house, flow)
    assert found.ok, found.report()
    assert found.identical == 3


def test_losers_of_a_join_lose_again() -> None:
    def script(request: ModelRequest) -> Reply:
        wait_s = {"slow": 9.0, "quick": 1.0}[request.messages[-1].content]
        return Reply(request.messages[-1].content, first_token_s=wait_s)

    nodes = """\
  s: {model: small, prompt: slow}
  q: {model: small, prompt: quick}
  a: {join: [s, q], mode: any}"""
    house, flow = House(script), loads(nodes)
    assert house.run(flow).outputs == {"a": "quick"}
    found = again(house, flow)
    assert found.ok, found.report()
    assert found.identical == 3


def test_a_node_that_timed_out_does_so_again() -> None:
    nodes = "  a: {model: small, prompt: x, timeout: 2s, default: late}"
    house, flow = House(lambda _: Reply("text", first_token_s=60.0)), loads(nodes)
    assert house.run(flow).outputs == {"a": "late"}
    found = again(house, flow)
    assert found.ok, found.report()
    assert found.identical == 1


def test_a_run_that_was_cancelled_is_cancelled_again() -> None:
    house = House(lambda _: Reply("text", first_token_s=60.0))
    flow = loads("  a: {model: small, prompt: x}\n  b: {value: 1}")

    def start() -> Any:
        run = flow.start({}, **house.settings())
        asyncio.get_running_loop().call_later(2.0, run.cancel, "enough")
        return run

    assert house.wait(start).status == "cancelled"
    found = again(house, flow)
    assert found.ok, found.report()
    assert found.identical == 2


def test_what_came_from_a_store_comes_from_the_record() -> None:
    house, flow = House(), loads("  a: {model: small, prompt: x, cache: true}")
    store = MemoryStore(house.clock)
    house.run(flow, store=store)
    house.run(flow, store=store)
    assert house.story().outcomes["a"].via == "cache"  # type: ignore[index]
    found = again(house, flow)
    assert found.ok, found.report()


def test_a_run_in_several_parts() -> None:
    nodes = """\
  notes: {map: [a, b, c], as: x, width: 1, do: {model: small, prompt: "{{ x }}"}}
  sure: {ask: "Sure?", after: notes}"""
    house = House(lambda request: Reply(request.messages[-1].content, first_token_s=1.0))
    flow = loads(nodes, 'a: "{{ notes }} {{ sure }}"')
    house.left(flow, 1.5)
    result = house.resume(flow, {"sure": "yes"})
    assert result.ok
    found = again(house, flow)
    assert found.ok, found.report()
    assert found.result.outputs == result.outputs


def test_a_run_that_has_no_end_is_compared_as_far_as_it_went() -> None:
    nodes = "  a: {model: small, prompt: x}\n  b: {ask: 'So?', after: a}"
    house, flow = House(), loads(nodes)
    house.left(flow, 1.0)
    found = again(house, flow)
    assert found.ok
    assert found.identical == 1
    assert found.open == ("b",)


def test_a_changed_prompt_is_told_and_answered_as_it_was() -> None:
    house, flow = House(), loads('  a: {model: small, prompt: "tell me"}')
    house.run(flow)
    changed = loads('  a: {model: small, prompt: "tell us"}')
    found = again(house, changed)
    assert not found.ok
    assert found.result.outputs == {"a": "<tell me>"}
    assert "[-m-]{+us+}" not in str(found.drifts[0])
    assert "tell " in found.report()
    assert "a: the model small" in found.report()
    strict = again(house, changed, strict=True)
    assert "CassetteMiss" in strict.report()


def test_a_changed_function_is_told_by_its_value() -> None:
    house, flow = House(), loads("  a: {value: 1}\n  b: {value: '{{ a + 1 }}'}", 'b: "{{ b }}"')
    house.run(flow)
    found = again(house, loads("  a: {value: 1}\n  b: {value: '{{ a + 2 }}'}", 'b: "{{ b }}"'))
    assert [(each.what, each.name) for each in found.differences] == [
        ("node", "b"),
        ("output", "b"),
    ]
    assert '"value":2' in found.differences[0].then
    assert '"value":3' in found.differences[0].now


def test_new_and_missing_nodes_are_told() -> None:
    house = House()
    house.run(loads("  a: {value: 1}\n  b: {value: 2}"))
    found = again(house, loads("  a: {value: 1}\n  c: {value: 2}"))
    gone, new = found.differences[:2]
    assert (gone.name, gone.now) == ("b", "it did not end")
    assert (new.name, new.then) == ("c", "it was not there")


def test_a_secret_that_is_not_here_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-secret-value")
    house = House(lambda request: f"got {request.messages[-1].content}")
    flow = loads('  a: {model: small, prompt: "key {{ topic }}"}')
    result = house.run(flow, inputs={"topic": "very-secret-value"})
    assert result.outputs == {"a": "got key very-secret-value"}
    story = house.story()
    assert "very-secret-value" not in repr(story.records) + repr(story.header)
    assert again(house, flow).result.outputs == result.outputs
    monkeypatch.delenv("SOME_API_KEY")
    found = again(house, flow)
    assert found.ok, found.report()
    assert found.result.outputs == {"a": "got key [secret:SOME_API_KEY]"}


def test_not_inside_an_event_loop() -> None:
    house, flow = House(), loads("  a: {value: 1}")
    house.run(flow)

    async def main() -> None:
        with pytest.raises(BuildError, match="event loop"):
            again(house, flow)

    asyncio.run(main())


def test_a_function_in_a_thread_is_waited_for() -> None:
    """Time does not jump to the node's timeout while the function works."""
    gate = threading.Event()

    def nap() -> str:
        return "late" if gate.wait(0.05) else "slept"

    flow = weft.Flow("naps")
    flow.output(a=flow.call(nap, timeout=20, name="a"))
    house = House()
    house.clock.busy = lambda: True
    assert house.run(flow, models=None).outputs == {"a": "slept"}
    found = again(house, flow)
    assert found.ok, found.report()


@examples(30)
@given(programs(), st.integers(0, 2**16))
def test_any_program_is_repeated_identically(nodes: str, seed: int) -> None:
    def script(request: ModelRequest) -> Reply:
        text = request.messages[-1].content
        dice = (hash_of(text) + seed) % 11
        error = ModelUnavailable("gone") if dice == 0 else None
        return Reply(f"m{dice}", first_token_s=dice / 2, per_token_s=0.1, error=error)

    async def tool(query: str) -> str:
        dice = (hash_of(query) + seed) % 7
        await asyncio.sleep(dice)
        if dice == 1:
            raise ToolRaised("broken")
        return f"t{dice}"

    house, flow = House(script, search=tool), loads(nodes, 'a: "{{ n0 }}"')
    result = house.run(flow)
    found = again(house, flow)
    assert found.ok, f"{nodes}\n{found.report()}"
    assert found.identical == len(result.outcomes)
    assert found.result.outputs == result.outputs


def hash_of(text: str) -> int:
    return sum(text.encode())


def test_a_story_is_what_was_recorded() -> None:
    house, flow = House(), loads("  a: {model: small, prompt: x}")
    result = house.run(flow)
    story = house.story()
    assert isinstance(story, RunHistory)
    assert story.outcomes == result.outcomes
    assert story.trace.status == "succeeded"
    assert [type(call).__name__ for call in story.calls][-1] == "ModelAnswered"
