"""The end of a gateway: what is under way is finished, what is new is refused."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack

import pytest

from tests.serving.gateway.gateway_server import Held, House, house, run, says, until
from weft.core.errors import DuplicateName, ServeError
from weft.serving.gateway import Gateway, GatewayOptions, ServedModel
from weft.testing import FakeModel, Reply


def slow(seconds: float) -> FakeModel:
    return FakeModel([Reply("at last", first_token_s=seconds)])


def test_what_is_under_way_is_finished_and_what_is_new_refused() -> None:
    async def main() -> None:
        model = Held()
        async with house(model) as here:
            tasks = [asyncio.create_task(here.chat(stream=stream)) for stream in (False, True)]
            http = await here.http()
            await http.get("/healthz")
            await until(lambda: model.running == 2)
            here.gateway.drain()
            await until(lambda: here.gateway._draining.is_set())
            await asyncio.sleep(0)
            health = await http.get("/healthz")
            assert (health.status_code, health.json()) == (200, {"status": "draining"})
            ready = await http.get("/readyz")
            assert (ready.status_code, ready.json()) == (503, {"status": "draining"})
            refused = await here.chat()
            assert refused.status_code == 503
            assert refused.headers["connection"] == "close"
            assert refused.headers["retry-after"] == "1"
            model.go.set()
            for task in tasks:
                assert " last" in (await task).text
        assert here.ended is True
        assert model.cancelled == 0

    run(main())


@pytest.mark.parametrize("stream", [False, True])
def test_what_takes_too_long_is_cut_off_and_told(stream: bool) -> None:
    model = FakeModel([Reply("one two", per_token_s=60)])

    async def main() -> None:
        async with house(model, drain_s=0.0) as here:
            task = asyncio.create_task(here.chat(stream=stream))
            await until(lambda: model.running == 1)
            here.gateway.drain()
            answer = await task
            assert "shutting_down" in answer.text
            assert "[DONE]" not in answer.text
            assert answer.status_code == (200 if stream and '"one"' in answer.text else 503)
        assert here.ended is False
        assert (model.running, model.cancelled) == (0, 1)

    run(main())


def test_an_idle_gateway_ends_at_once_and_gives_its_port_back() -> None:
    async def main() -> None:
        async with house(says()) as here:
            await (await here.http()).get("/v1/models")
            port = here.port
        assert here.ended is True
        with socket.create_server(("127.0.0.1", port)):
            pass

    run(main())


def test_cancelling_it_ends_everything() -> None:
    model = slow(60)

    async def main() -> None:
        gateway = Gateway([ServedModel("fake", model)], GatewayOptions(port=0))
        gateway.bind()
        ready = asyncio.Event()
        serving = asyncio.create_task(gateway.serve(ready.set))
        await ready.wait()
        async with AsyncExitStack() as stack:
            chat = asyncio.create_task(House(gateway, stack).chat())
            await until(lambda: model.running == 1)
            serving.cancel()
            await asyncio.wait([serving, chat])
            assert serving.cancelled()
            assert "shutting_down" in chat.result().text
        assert model.running == 0

    run(main())


def test_a_port_that_is_taken_is_said_before_anything_runs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServeError, match=f"cannot listen on 127.0.0.1:{port}"):
            Gateway([], GatewayOptions(port=port)).bind()


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(DuplicateName, match="'fake'"):
        Gateway([ServedModel("fake", says()), ServedModel("fake", says())])


def test_nobody_can_connect_before_it_serves() -> None:
    gateway = Gateway([], GatewayOptions(port=0))
    gateway.bind()
    port = int(gateway.address.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    gateway.close()
    gateway.close()
