"""A model client whose requests take the way that they take over HTTP, up to the router's bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing

from evals.serving.routers.policies import Admitting, RoutingPolicy, Wire
from weft.core.ports import Capabilities, ModelEvent, ModelRequest, Prefilled, TextDelta
from weft.core.values import Completion, Usage
from weft.serving.openai.body import body_of
from weft.serving.openai.contract import ProgramContract
from weft.serving.openai.server import Server

_SERVER = Server("vllm", version=(0, 32))


class RoutedModel:
    """Implements `ModelClient`: headers and body are those of `OpenAIModel`; `context` likewise."""

    model = "routed"

    def __init__(self, router: RoutingPolicy, context: Collection[str] = ()) -> None:
        self._router = router
        self._contract = ProgramContract(context)
        self._offered = _SERVER.capabilities(priority=True)

    async def capabilities(self) -> Capabilities:
        return self._offered

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        wire, tokens = self._wire(request), request.sampling.max_tokens or 0
        try:
            if isinstance(self._router, Admitting):
                await self._router.admit(wire)
            replica = self._router.choose(wire)
            answer = replica.answer(tuple(wire.fields["prompt"]), tokens, wire.priority)
            async with aclosing(answer) as pieces:
                async for ids in pieces:
                    if not ids:
                        yield Prefilled()
                        continue
                    yield TextDelta("x" * len(ids), ids)
                    usage = Usage(len(request.prompt_token_ids), len(ids), requests=1)
                    found = Completion("x" * len(ids), "length", token_ids=ids, usage=usage)
                    self._contract.answered(request, found)
                    yield found
        finally:
            self._router.ended(wire)

    async def aclose(self) -> None:
        return

    def _wire(self, request: ModelRequest) -> Wire:
        body = body_of(request, _SERVER, self._offered) | {"model": self.model, "stream": True}
        body = self._contract.written(body, request, _SERVER, request.timeout_s)
        return Wire(self._contract.headers(request), json.dumps(body).encode())
