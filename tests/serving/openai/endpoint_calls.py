"""Short ways to ask a scripted endpoint."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from tests.serving.openai.scripted import Endpoint
from weft.core.ports import Delta, ModelEvent, ModelRequest, complete
from weft.core.values import Completion, Message
from weft.serving.openai import OpenAIModel


def question(**fields: Any) -> ModelRequest:
    return ModelRequest((Message("user", "hi"),), **fields)


def ask(endpoint: Endpoint, request: ModelRequest | None = None, **settings: Any) -> Completion:
    """One answer, with a client of its own."""
    return heard(endpoint, [], request, **settings)


def heard(
    endpoint: Endpoint,
    deltas: list[Delta],
    request: ModelRequest | None = None,
    **settings: Any,
) -> Completion:
    """Like `ask`; `deltas` collects what came before the end, also when it fails."""

    async def main() -> Completion:
        async with aclosing(OpenAIModel(endpoint.base_url, "m", **settings)) as client:
            return await complete(client, request or question(), deltas.append)

    return asyncio.run(main())


def events(endpoint: Endpoint, request: ModelRequest | None = None) -> list[ModelEvent]:
    """All events of one answer."""

    async def main() -> list[ModelEvent]:
        async with (
            aclosing(OpenAIModel(endpoint.base_url, "m")) as client,
            aclosing(client.generate(request or question())) as stream,
        ):
            return [event async for event in stream]

    return asyncio.run(main())
