from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from tests import manual_clock
from tests.serving.openai.endpoint_calls import ask, question
from tests.serving.openai.scripted import EndpointServer, Script, chunk, says
from weft.core.errors import ModelTimeout
from weft.core.ports import Delta, complete
from weft.serving.deadline import Deadline
from weft.serving.openai import OpenAIModel
from weft.testing import FakeClock


async def ticking(log: list[str]) -> AsyncGenerator[int, None]:
    try:
        for number in range(100):
            await asyncio.sleep(1)
            yield number
    finally:
        log.append("closed")


async def reading(log: list[str], each_s: float) -> None:
    async for number in Deadline(3.5).each(ticking(log)):
        await asyncio.sleep(each_s)
        log.append(f"read {number}")


@pytest.mark.parametrize(
    ("each_s", "wanted"),
    [(0, ["read 0", "read 1", "read 2", "closed"]), (10, ["read 0", "closed"])],
    ids=["a fast reader", "a slow reader, who is not interrupted"],
)
def test_time_ends_a_stream_and_closes_it(each_s: float, wanted: list[str]) -> None:
    async def main() -> None:
        log: list[str] = []
        with pytest.raises(ModelTimeout, match=r"not complete after 3.5 s"):
            await reading(log, each_s)
        assert log == wanted

    FakeClock().run(main())


def test_being_cancelled_is_not_a_timeout() -> None:
    async def main() -> None:
        task = asyncio.ensure_future(Deadline(5).wait(asyncio.sleep(60)))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    FakeClock().run(main())


def test_a_timeout_of_somebody_else_is_theirs() -> None:
    async def slow() -> None:
        async with asyncio.timeout(1):
            await asyncio.sleep(60)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await Deadline(5).wait(slow())

    FakeClock().run(main())


def test_without_a_limit_there_is_all_the_time() -> None:
    async def main() -> None:
        for timeout_s in (None, math.inf):
            deadline = Deadline(timeout_s)
            assert deadline.remaining_ms is None
            assert await deadline.wait(asyncio.sleep(1e6, "done")) == "done"

    FakeClock().run(main())


def test_what_remains_shrinks_and_is_never_nothing() -> None:
    async def main() -> None:
        deadline = Deadline(2.5)
        assert deadline.remaining_ms == 2500
        await asyncio.sleep(1)
        assert deadline.remaining_ms == 1500
        await asyncio.sleep(10)
        assert deadline.remaining_ms == 1

    FakeClock().run(main())


def test_the_deadline_and_an_id_travel_with_the_request(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"))
    for _ in range(2):
        ask(endpoint, question(timeout_s=30.0))
    ask(endpoint)
    asked = [
        headers
        for path, headers in zip(endpoint.paths, endpoint.headers, strict=True)
        if path.endswith("completions")
    ]
    assert len({headers["x-request-id"] for headers in asked}) == 3
    assert all(0 < int(headers["x-weft-timeout-ms"]) <= 30_000 for headers in asked[:2])
    assert "x-weft-timeout-ms" not in asked[2]


@pytest.mark.parametrize("timeout_s", [0, -1.0, math.nan])
def test_nobody_is_asked_without_time(endpoints: EndpointServer, timeout_s: float) -> None:
    endpoint = endpoints.add(says("x"))
    with pytest.raises(ModelTimeout, match="not sent"):
        ask(endpoint, question(timeout_s=timeout_s))
    assert endpoint.paths == []


@pytest.mark.parametrize(
    "script",
    [
        Script(first_s=60.0),
        Script([chunk({"content": "x"})], stall_after=1),
        Script([chunk({"content": "x"})], repeat=True, every_s=0.01),
    ],
    ids=["no answer", "half an answer", "an endless answer"],
)
def test_a_late_answer_is_a_timeout_and_the_server_learns_it(
    endpoints: EndpointServer, script: Script
) -> None:
    endpoint = endpoints.add(script)

    async def main() -> None:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as client:
            await client.capabilities()
            asking = asyncio.create_task(complete(client, question(timeout_s=20.0)))
            await endpoint.asked()
            manual_clock.pass_time(20)
            with pytest.raises(ModelTimeout):
                await asking
            await endpoint.settled(broken_off=1)

    manual_clock.run(main())
    assert endpoint.broken_off == 1


def test_a_slow_discovery_counts_and_does_not_block_the_next(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(says("x"), models=Script(first_s=60.0))

    async def main() -> None:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as client:
            with pytest.raises(ModelTimeout):
                await complete(client, question(timeout_s=0.2))
            endpoint.models = Script(plain='{"data": []}')
            assert (await complete(client, question(timeout_s=60))).text == "x"

    asyncio.run(main())


def test_what_came_before_the_end_was_heard(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(Script([chunk({"content": "x"})], stall_after=1))
    deltas: list[Delta] = []

    def hear(delta: Delta) -> None:
        deltas.append(delta)
        manual_clock.pass_time(20)

    async def main() -> None:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as client:
            with pytest.raises(ModelTimeout):
                await complete(client, question(timeout_s=20.0), hear)

    manual_clock.run(main())
    assert [delta for delta in deltas if delta]
