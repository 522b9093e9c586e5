from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from tests import manual_clock
from tests.conformance.model_client import no_tasks_left
from tests.serving.openai.endpoint_calls import heard, question
from tests.serving.openai.scripted import Endpoint, EndpointServer, says
from weft.core.errors import ModelUnavailable
from weft.core.ports import Delta, TextDelta, complete
from weft.core.values import Completion
from weft.serving.openai import OpenAIModel

TEXT = "one two three four"


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_connection_that_breaks(endpoints: EndpointServer, after: int) -> None:
    deltas: list[Delta] = []
    with pytest.raises(ModelUnavailable, match="broke") as raised:
        heard(endpoints.add(says(TEXT, die_after=after)), deltas)
    assert raised.value.retryable
    assert len(deltas) == max(0, after - 1)


def test_a_connection_that_breaks_inside_a_chunk(endpoints: EndpointServer) -> None:
    with pytest.raises(ModelUnavailable, match="broke"):
        heard(endpoints.add(says(TEXT, die_after=3, cut=5)), [])


def test_a_stream_that_just_ends(endpoints: EndpointServer) -> None:
    script = says(TEXT, done=False, finish="")
    with pytest.raises(ModelUnavailable, match="before the answer was complete") as raised:
        heard(endpoints.add(script), [])
    assert raised.value.retryable


@pytest.mark.parametrize("after", [0, 3])
def test_a_silence_that_lasts_too_long(endpoints: EndpointServer, after: int) -> None:
    endpoint = endpoints.add(says(TEXT, stall_after=after))

    async def main() -> None:
        async with aclosing(OpenAIModel(endpoint.base_url, "m", idle_timeout_s=20)) as client:
            await client.capabilities()
            asking = asyncio.create_task(complete(client, question()))
            await endpoint.asked()
            while not asking.done():  # it may not be waiting yet
                manual_clock.pass_time(20)
                await asyncio.sleep(0)
            with pytest.raises(ModelUnavailable, match="silent for 20 s") as raised:
                await asking
            assert raised.value.retryable
            await endpoint.settled(broken_off=1)

    manual_clock.run(main())
    assert endpoint.broken_off == 1


def test_a_server_that_hangs_after_done_costs_no_answer(endpoints: EndpointServer) -> None:
    script = says(TEXT, done=False)
    hanging = type(script)([*script.chunks, "[DONE]"], stall_after=len(script.chunks) + 1)
    assert heard(endpoints.add(hanging), []).text == TEXT


def test_a_killed_server_gives_a_retryable_error() -> None:
    """The real thing: another process, SIGKILL in the middle of its answer."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.serving.openai.scripted"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    seen: list[Delta] = []

    async def main(url: str) -> None:
        def kill_after_five(delta: Delta) -> None:
            seen.append(delta)
            if len(seen) == 5:
                server.send_signal(signal.SIGKILL)

        async with aclosing(OpenAIModel(url, "m", idle_timeout_s=30)) as client:
            with pytest.raises(ModelUnavailable, match="broke") as broken:
                await complete(client, question(), kill_after_five)
            assert broken.value.retryable
            with pytest.raises(ModelUnavailable) as gone:
                await complete(client, question())
            assert gone.value.retryable
        await no_tasks_left()

    with server:
        assert server.stdout is not None
        asyncio.run(main(server.stdout.readline().strip()))
    assert server.returncode == -signal.SIGKILL
    assert len(seen) >= 5


def test_leaving_a_stream_reaches_the_server(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says(TEXT, stall_after=3))

    async def main() -> None:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as client:
            stream = client.generate(question())
            assert await anext(stream) == TextDelta("one")
            await stream.aclose()
            await endpoint.settled(broken_off=1)
        assert endpoint.broken_off == 1
        await no_tasks_left()

    asyncio.run(main())


@pytest.mark.parametrize("where", ["before the first word", "in the middle"])
def test_cancelling_reaches_the_server(endpoints: EndpointServer, where: str) -> None:
    endpoint = endpoints.add(says(TEXT, stall_after=0 if where.startswith("before") else 3))

    async def main() -> None:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as client:
            await client.capabilities()
            task = asyncio.ensure_future(complete(client, question()))
            # what the client asked before may be open a moment longer
            while not (endpoint.open and endpoint.paths[-1].endswith("completions")):
                await asyncio.sleep(0.002)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await endpoint.settled(broken_off=1)
        assert endpoint.broken_off == 1
        await no_tasks_left()

    asyncio.run(main())


def test_sixty_four_at_once_share_a_pool(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(
        lambda body: says(f"answer to {body['messages'][0]['content']}", together=64)
    )
    connections: list[int] = []

    async def main() -> list[Completion]:
        async with aclosing(OpenAIModel(endpoint.base_url, "m", connections=64)) as client:
            await client.capabilities()
            for _ in range(20):
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(complete(client, question())) for _ in range(64)]
                connections.append(len(endpoint.clients))
                if connections[-2:] == [connections[-1]] * 2:
                    break  # else the machine stood still for so long that they had been idle
        await no_tasks_left()
        gc.collect()
        return [task.result() for task in tasks]

    assert {answer.text for answer in asyncio.run(main())} == {"answer to hi"}
    assert endpoint.most_open == 64
    assert connections[-1] == connections[-2], "a round uses the connections of the one before"
    assert connections[0] <= 65
    assert endpoint.broken_off == 0


def test_a_small_pool_waits_for_its_turn(endpoints: EndpointServer) -> None:
    async def main(endpoint: Endpoint) -> None:
        client = OpenAIModel(endpoint.base_url, "m", connections=3)
        async with aclosing(client), asyncio.TaskGroup() as group:
            for _ in range(12):
                group.create_task(complete(client, question()))

    most_open = []
    while min(most_open, default=12) > 3 and len(most_open) < 20:
        endpoint = endpoints.add(says("x", every_s=0.002))
        asyncio.run(main(endpoint))
        assert len(endpoint.requests) == 12
        most_open.append(endpoint.most_open)  # 4 where a slow machine has closed an idle one
    assert min(most_open) <= 3
