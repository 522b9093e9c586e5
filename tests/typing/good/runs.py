"""Programs that type checkers accept: flows with types, runs, events, agents and tests."""

from __future__ import annotations

from pathlib import Path

import weft
import weft.events
from tests.typing.shapes import Hit, In, Out, Topic, rate, search
from weft.testing import FakeModel, MemoryJournal, RunSpy


def typed_flow() -> weft.Flow[In, Out]:
    flow = weft.Flow("typed", inputs=In, outputs=Out, models={"m": FakeModel(["x"])})
    hits = flow.tool(search, flow.params.topic, limit=flow.params.limit)
    flow.output(answer=flow.model("m", f"About {hits[0].title}"), hits=hits)
    return flow


def types_of_inputs_and_outputs() -> None:
    flow = weft.Flow("typed", inputs=In, outputs=Out, models={"m": FakeModel(["x"])})
    hits = flow.tool(search, flow.params.topic, limit=flow.params.limit)
    flow.output(answer=flow.model("m", "p"), hits=hits)
    answer: str = flow.run_sync(topic="tea").outputs.answer
    first: Hit = flow.run_sync(In(topic="tea"), concurrency=2).outputs.hits[0]
    assert (answer, first) == ("x", Hit(title="tea"))


def a_flow_that_a_function_returns() -> None:
    result = typed_flow().run_sync(In(topic="tea", limit=1))
    assert result.ok
    assert result.outputs.hits[1].score == 1


def typed_dicts_are_inputs() -> None:
    flow = weft.Flow("dict", inputs=Topic)
    flow.output(topic=flow.value(flow.params["topic"]))
    result = flow.run_sync(topic="tea")
    assert (result.outputs["topic"], result["topic"]) == ("tea", "tea")


def limits_of_a_flow() -> None:
    flow = weft.Flow("limits", concurrency=4, deadline="5m", max_nodes=9, seed=3)
    flow.output(hits=flow.tool(search, "tea"))
    result = flow.run_sync({}, deadline=3.5, limits={"search": 2}, budget={"tokens": 9})
    assert result.usage.completion_tokens == 0


async def a_run_that_is_awaited() -> None:
    result = await typed_flow().run(In(topic="tea"), seed=3)
    assert result.outputs.answer.upper() == "X"


async def a_started_run() -> None:
    run = typed_flow().start(In(topic="tea"), concurrency=3)
    result = await run.wait()
    assert result.outputs.hits[0].title == "tea"


async def events_of_a_stream() -> None:
    text = ""
    async with typed_flow().stream(In(topic="tea")) as stream:
        async for event in stream:
            if isinstance(event, weft.events.NodeStreamed):
                text += event.text
            elif isinstance(event, weft.events.NodeFinished):
                assert event.outcome.ok
    assert text == "x"


async def the_result_of_a_stream() -> None:
    async with typed_flow().stream(In(topic="tea")) as stream:
        async for _ in stream:
            pass
    answer: str = stream.result().outputs.answer
    waited = await typed_flow().stream(topic="tea", limit=1).wait()
    first: Hit = waited.outputs.hits[0]
    assert (answer, first) == ("x", Hit(title="tea"))


async def a_resumed_run_as_a_stream(journal: MemoryJournal) -> str:
    flow = typed_flow()
    stream = weft.RunStream(lambda on: flow.resume("last", journal=journal, listeners=[on]))
    return (await stream.wait()).outputs.answer


def a_spy_on_a_run() -> None:
    spy = RunSpy()
    flow = weft.Flow("spied", models={"m": FakeModel({"About": "y", "other": ["a", "b"]})})
    note = flow.model("m", "About tea")
    flow.output(note=note, found=flow.tool(search, "tea"))
    flow.run_sync(journal=spy)
    spy.assert_ran("note", times=1)
    spy.assert_called("search", query="tea")
    assert spy.usage.prompt_tokens > 0


def tools_are_functions() -> None:
    assert rate(Hit(title="t", score=4)) + 1 == 5


async def an_agent(model: FakeModel) -> None:
    answer = await weft.ask(
        "Which?",
        tools=[search, rate],
        model=model,
        options=weft.AgentOptions(rounds=2, instructions="Be terse."),
        settings=weft.AskSettings(deadline=5, answers={"answer": True}),
    )
    assert answer.calls


async def a_thought(model: FakeModel) -> None:
    thought = await weft.think(
        "Which?", strategy="sample", model=model, options=weft.ThinkOptions(width=2)
    )
    assert thought.answer


def an_image(path: Path) -> weft.Image:
    return weft.Image.from_file(path)
