"""A model server that is killed in the middle of its answer, seen from a whole run."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.serving.openai.endpoint_calls import question
from weft.core.errors import ModelUnavailable
from weft.core.events import Event, NodeRerouted, NodeRetrying
from weft.core.ids import NodeId
from weft.core.ports import ModelClient, complete
from weft.engine import Graph, Node, NodeFn, Policy, Retry, Run
from weft.serving.openai import OpenAIModel
from weft.testing import FakeModel

Server = subprocess.Popen[str]


@pytest.fixture
def server() -> Iterator[Server]:
    command = [sys.executable, "-m", "tests.serving.openai.scripted"]
    folder = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        yield process
        process.kill()


def _address(server: Server) -> str:
    assert server.stdout is not None
    return server.stdout.readline().strip()


def _asks(model: ModelClient, on_delta: Any = None) -> NodeFn:
    async def work(context: object, inputs: object) -> str:
        return (await complete(model, question(), on_delta)).text

    return work


def test_the_run_retries_then_takes_the_fallback_and_keeps_the_sibling(server: Server) -> None:
    events: list[Event] = []
    pieces = 0

    def kill_in_the_middle(_: object) -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 5:
            server.send_signal(signal.SIGKILL)

    async def main() -> Any:
        async with aclosing(OpenAIModel(_address(server), "m")) as model:
            fallback = Node(NodeId("spare"), _asks(FakeModel(["from the spare model"])))
            policy = Policy(retry=Retry(attempts=2, delay_s=0.001), fallback=fallback)
            graph = Graph(
                "killed",
                [
                    Node(NodeId("answer"), _asks(model, kill_in_the_middle), policy=policy),
                    Node(NodeId("sibling"), _asks(FakeModel(["untouched"]))),
                ],
                keep=[NodeId("answer"), NodeId("sibling")],
            )
            return await Run(graph, listeners=[events.append]).wait()

    result = asyncio.run(main())
    assert result.status == "succeeded"
    assert result.outcomes[NodeId("answer")].value == "from the spare model"
    assert result.outcomes[NodeId("answer")].via == "fallback"
    assert result.outcomes[NodeId("sibling")].value == "untouched"
    retrying = [event for event in events if isinstance(event, NodeRetrying)]
    assert [event.failure.error for event in retrying] == [ModelUnavailable.__name__]
    assert retrying[0].failure.retryable
    rerouted = [event for event in events if isinstance(event, NodeRerouted)]
    assert [(event.node, event.failure.error) for event in rerouted] == [
        ("answer", ModelUnavailable.__name__)
    ]
