"""Programs that type checkers refuse, each at the marked line: flows, runs, agents, tests."""

from __future__ import annotations

from typing import Any

import weft
import weft.events
from tests.typing.shapes import In, Out, rate, search
from weft.testing import FakeModel, RunSpy

flow = weft.Flow("typed", inputs=In, outputs=Out)
Result = weft.FlowResult[Out]


def an_input_that_is_missing() -> None:
    flow.run_sync()  # error


def an_unknown_input() -> None:
    flow.run_sync(topc="tea")  # error


def an_input_of_another_type() -> None:
    flow.run_sync(topic=3)  # error


def inputs_of_another_type() -> None:
    flow.run_sync(Out(answer="a"))  # error


def a_setting_of_another_type() -> None:
    flow.run_sync(In(topic="tea"), concurrency="many")  # error


def an_unknown_setting() -> None:
    flow.run_sync(In(topic="tea"), concurency=3)  # error


async def an_input_of_an_awaited_run() -> None:
    await flow.run(topc="tea")  # error


def an_input_of_a_stream() -> None:
    flow.stream(topc="tea")  # error


def answers_that_are_no_mapping() -> None:
    flow.start(In(topic="tea"), answers=["yes"])  # error


def an_unknown_keyword_of_resume() -> None:
    flow.resume("last", acept_changes=True)  # error


def a_field_of_the_outputs(result: Result) -> Any:
    return result.outputs.nonexistent  # error


def a_field_of_the_result() -> Any:
    return flow.run_sync(topic="tea").output  # error


def a_run_without_await() -> Any:
    return flow.run(topic="tea").outputs  # error


def a_handle_of_the_inputs() -> Any:
    return flow.params.topc  # error


def an_input_for_another_type() -> None:
    flow.tool(search, flow.params.limit)  # error


def a_keyword_of_a_flow() -> None:
    weft.Flow("other", modles={"m": "local:small"})  # error


def a_limit_of_a_flow() -> None:
    weft.Flow("other", concurrency="many")  # error


def inputs_that_are_no_type() -> None:
    weft.Flow("other", inputs={"topic": str})  # error


async def a_field_of_an_event() -> None:
    async for event in flow.stream(topic="tea"):
        if isinstance(event, weft.events.NodeStreamed):
            print(event.txt)  # error


async def a_field_of_the_outputs_of_a_stream() -> Any:
    stream = flow.stream(topic="tea")
    await stream.wait()
    return stream.result().outputs.nonexistent  # error


async def a_field_of_the_outputs_of_a_stream_in_a_context() -> Any:
    async with flow.stream(In(topic="tea")) as stream:
        return (await stream.wait()).outputs.nonexistent  # error


async def a_method_of_the_run_of_a_stream() -> None:
    stream = flow.stream(In(topic="tea"))
    stream.run.answr("ok", True)  # error


async def a_keyword_of_an_agent() -> None:
    await weft.ask("Which?", tols=[search])  # error


async def an_option_of_an_agent() -> None:
    await weft.ask("Which?", options=weft.AgentOptions(rounds="4"))  # error


async def an_agent_without_await() -> Any:
    return weft.ask("Which?").value  # error


async def a_keyword_of_a_thought() -> None:
    await weft.think("Which?", stratgy="sample")  # error


async def options_of_another_kind() -> None:
    await weft.think("Which?", options=weft.AgentOptions())  # error


def an_unknown_setting_of_a_question() -> None:
    weft.AskSettings(deadlin=3)  # error


@weft.tool(timeout=5)  # error
def slow(query: str) -> str:
    return query


@weft.tool(effect="never")  # error
def other(query: str) -> str:
    return query


def a_direct_call_of_a_tool() -> None:
    rate("tea")  # error


def a_keyword_of_a_fake() -> None:
    FakeModel(["x"], modell="m")  # error


def a_script_of_a_fake() -> None:
    FakeModel(3)  # error


def a_method_of_a_spy() -> None:
    RunSpy().assert_rn("note")  # error


def an_argument_of_a_spy() -> None:
    RunSpy().assert_ran("note", times="2")  # error


def an_image_of_a_number() -> None:
    weft.Image.from_file(3)  # error
