"""What runs ask, and answers to it, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import httpx2

from tests.serving.gateway.gateway_server import KEY, run, says
from weft.core.errors import InputError, StoreError, UnknownReference
from weft.serving.gateway import Gateway, GatewayKeys, GatewayOptions, ServedModel

BOOL = {"type": "boolean"}


class Asking:
    """Implements `People` for one run, which is called `the/run`."""

    def __init__(self) -> None:
        self.given: list[tuple[str, Any]] = []
        self.broken = False

    def questions(self, run: str) -> Sequence[Mapping[str, Any]]:
        if self.broken:
            raise StoreError("at /a/secret/place")
        if run != "the/run":
            raise UnknownReference(f"there is no run {run!r}", hint="a secret name")
        return [{"node": "ok", "question": "Sure?", "schema": BOOL}]

    def answer(self, run: str, node: str, value: Any) -> bool:
        self.questions(run)
        if node != "ok":
            raise UnknownReference(f"{node!r} asks nothing")
        if not isinstance(value, bool):
            raise InputError("the answer does not fit: not of type 'boolean'")
        self.given.append((node, value))
        return True


def asked(body: Callable[[httpx2.AsyncClient, Asking], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        people = Asking()
        given = GatewayOptions(port=0, **options)
        gateway = Gateway([ServedModel("fake", says())], given, people=people)
        gateway.bind()
        ready = asyncio.Event()
        serving = asyncio.create_task(gateway.serve(ready.set))
        await ready.wait()
        async with AsyncExitStack() as stack:
            client = httpx2.AsyncClient(base_url=gateway.address, trust_env=False, timeout=None)
            await body(await stack.enter_async_context(client), people)
        gateway.drain()
        await serving

    run(main())


def test_questions_and_answers() -> None:
    async def body(client: httpx2.AsyncClient, people: Asking) -> None:
        told = (await client.get("/v1/runs/the/run/questions")).json()
        assert told["data"] == [{"node": "ok", "question": "Sure?", "schema": BOOL}]
        answer = {"node": "ok", "value": True}
        taken = await client.post("/v1/runs/the/run/answers", json=answer)
        assert (taken.status_code, taken.json()) == (
            202,
            {"run": "the/run", "node": "ok", "taken": True},
        )
        assert people.given == [("ok", True)]

    asked(body)


def test_what_is_wrong_with_an_answer() -> None:
    async def body(client: httpx2.AsyncClient, people: Asking) -> None:
        async def status(where: str, **how: Any) -> tuple[int, str]:
            answer = await client.post(f"/v1/runs/{where}/answers", **how)
            return answer.status_code, answer.json()["error"]["message"]

        fine = {"node": "ok", "value": True}
        assert await status("other", json=fine) == (404, "there is no run 'other'")
        assert (await status("the/run", json={"node": "no", "value": 1}))[0] == 404
        assert (await status("the/run", json={"node": "ok", "value": 1}))[0] == 400
        bodies: list[Any] = [[], {"value": True}, {"node": 1, "value": 1}, {"node": "ok"}]
        for wrong in bodies:
            assert (await status("the/run", json=wrong))[0] == 400
        assert (await status("the/run", content=b'{"node": "ok", "value": true}'))[0] == 415
        long = {"node": "n" * 5000, "value": True}
        assert (await status("the/run", json=long))[0] == 400
        people.broken = True
        assert await status("the/run", json=fine) == (503, "the journal cannot be used")
        assert people.given == []

    asked(body)


def test_keys_are_asked_for() -> None:
    async def body(client: httpx2.AsyncClient, people: Asking) -> None:
        answer = {"node": "ok", "value": True}
        for path in ("questions", "answers"):
            wanted = f"/v1/runs/the/run/{path}"
            assert (await client.post(wanted, json=answer)).status_code in (401, 405)
        assert (await client.get("/v1/runs/the/run/questions")).status_code == 401
        headers = {"authorization": f"Bearer {KEY}"}
        sent = await client.post("/v1/runs/the/run/answers", json=answer, headers=headers)
        assert sent.status_code == 202
        assert people.given == [("ok", True)]

    asked(body, keys=GatewayKeys([KEY]))


def test_nobody_is_asked_where_that_was_not_wanted() -> None:
    async def main() -> None:
        gateway = Gateway([ServedModel("fake", says())], GatewayOptions(port=0))
        gateway.bind()
        ready = asyncio.Event()
        serving = asyncio.create_task(gateway.serve(ready.set))
        await ready.wait()
        async with httpx2.AsyncClient(
            base_url=gateway.address, trust_env=False, timeout=None
        ) as client:
            assert (await client.get("/v1/runs/x/questions")).status_code == 404
        gateway.drain()
        await serving

    run(main())
