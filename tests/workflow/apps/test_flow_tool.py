"""A workflow as a tool: schemas, progress, outputs, and runs that are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client

import weft
from weft.core.errors import BuildError, Cancelled, DuplicateName, InputError, WeftError
from weft.testing import FakeModel, Reply
from weft.workflow.apps.flow_tool import FlowOutputs, FlowProgress, FlowTool
from weft.workflow.apps.mcp_server import WorkflowMcpServer

FLOW = """
name: answering
description: Answers.
inputs:
  question: string
  tree:
    default: {}
    $ref: "#/$defs/node"
    $defs: {node: {type: object, additionalProperties: {$ref: "#/$defs/node"}}}
models: {m: "local:m"}
nodes:
  answer: {model: m, prompt: "{{ question }}"}
  length: {value: "{{ answer | length }}"}
outputs: {answer: "{{ answer }}", length: "{{ length }}"}
"""


def tool(script: Callable[[Any], Reply], text: str = FLOW) -> tuple[FlowTool, FakeModel]:
    model = FakeModel(script)
    return FlowTool(weft.loads(text), {"m": model}), model


async def steps(made: FlowTool, **arguments: object) -> list[FlowProgress | FlowOutputs]:
    async with aclosing(made.call(arguments)) as found:
        return [step async for step in found]


def test_references_inside_an_input_still_lead_there() -> None:
    made, _ = tool(lambda _: Reply("x"))
    validator = Draft202012Validator(dict(made.spec.parameters))
    assert validator.is_valid({"question": "x", "tree": {"a": {"b": {}}}})
    assert not validator.is_valid({"question": "x", "tree": {"a": {"b": 1}}})
    assert not validator.is_valid({"question": "x", "other": 1})
    assert not validator.is_valid({})


def test_progress_and_then_the_outputs() -> None:
    made, _ = tool(lambda _: Reply("yes"))
    assert asyncio.run(steps(made, question="sure?")) == [
        FlowProgress(1, 2, "answer finished"),
        FlowProgress(2, 2, "length finished"),
        FlowOutputs({"answer": "yes", "length": 3}),
    ]


def test_wrong_inputs_and_failures_are_told() -> None:
    made, _ = tool(lambda _: Reply(error=BuildError("no such model")))
    with pytest.raises(InputError, match="`question` is missing"):
        asyncio.run(steps(made))
    with pytest.raises(WeftError, match="no such model"):
        asyncio.run(steps(made, question="x"))


def test_who_leaves_ends_the_run() -> None:
    async def main() -> None:
        made, model = tool(lambda _: Reply("x", first_token_s=3600))
        calling = asyncio.create_task(steps(made, question="x"))
        while not model.running:
            await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait({calling})
        await made.aclose()
        assert not model.running

    asyncio.run(main())


def test_closing_ends_runs_with_a_reason() -> None:
    async def main() -> None:
        made, model = tool(lambda _: Reply("x", first_token_s=3600))
        calling = asyncio.create_task(steps(made, question="x"))
        while not model.running:
            await asyncio.sleep(0)
        await made.aclose()
        with pytest.raises(Cancelled, match="answering was ended"):
            await calling

    asyncio.run(main())


def test_outputs_that_json_cannot_hold() -> None:
    text = 'name: n\nnodes: {a: {value: 1}}\noutputs: {x: "{{ a / 3 * 1e308 * 1e308 }}"}\n'
    made = FlowTool(weft.loads(text), {})
    with pytest.raises(WeftError):
        asyncio.run(steps(made))


def test_one_name_is_one_tool() -> None:
    flow = weft.loads(FLOW)
    with pytest.raises(DuplicateName, match="two workflows"):
        WorkflowMcpServer([flow, flow])


def test_runs_beyond_the_limit_wait() -> None:
    """Driven by the official client, in this process."""

    async def main() -> None:
        model = FakeModel(lambda _: Reply("x", first_token_s=0.01))
        served = WorkflowMcpServer([weft.loads(FLOW)], models={"m": model}, max_concurrent=1)
        most = 0
        async with Client(served.server, cache=None) as client:
            calls = [
                asyncio.create_task(client.call_tool("answering", {"question": str(number)}))
                for number in range(3)
            ]
            while not all(call.done() for call in calls):
                most = max(most, model.running)
                await asyncio.sleep(0)
            assert [call.result().structured_content for call in calls] == [
                {"answer": "x", "length": 1}
            ] * 3
        assert most == 1
        await served.aclose()

    asyncio.run(main())
