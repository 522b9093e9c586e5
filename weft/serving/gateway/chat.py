"""`POST /v1/chat/completions`: reads and checks a request, and sees to it that it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from weft.serving.gateway.admission import Admission
from weft.serving.gateway.answering import Answering, Asked
from weft.serving.gateway.asking import requests_of
from weft.serving.gateway.body import ChatBody, chat_body
from weft.serving.gateway.decoder import named_decoder
from weft.serving.gateway.exchange import Exchange
from weft.serving.gateway.fields import check_honoured, further_fields
from weft.serving.gateway.metrics import Metrics
from weft.serving.gateway.options import GatewayOptions
from weft.serving.gateway.problem import Problem, Refused, bad_request, problem_of
from weft.serving.gateway.reading import read_json
from weft.serving.gateway.response import Response
from weft.serving.gateway.schemas import check_schemas
from weft.serving.gateway.served import Served
from weft.serving.gateway.wanted import while_wanted

_TIMEOUT_HEADER = "x-weft-timeout-ms"
_LONGEST_NAME = 80


class ChatEndpoint:
    """An ASGI application. Setting `stopped` ends what is under way."""

    def __init__(
        self,
        models: Mapping[str, Served],
        options: GatewayOptions,
        admission: Admission,
        metrics: Metrics,
        stopped: asyncio.Event,
    ) -> None:
        self._models = models
        self._options = options
        self._admission = admission
        self._metrics = metrics
        self._stopped = stopped

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange.of(scope)
        response = Response(send)
        try:
            asked = await self._asked(Headers(scope=scope), receive, exchange)
            answering = Answering(asked, exchange, self._admission, self._metrics)
            await while_wanted(answering.write(response), response, receive, self._stopped)
        except ClientDisconnect:
            exchange.gone = True
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told
            exchange.error = f"{type(error).__name__}: {error}"
            await response.fail(problem_of(error, exchange.id))

    async def _asked(self, headers: Headers, receive: Receive, exchange: Exchange) -> Asked:
        timeout_s = _timeout_s(headers.get(_TIMEOUT_HEADER), self._options.timeout_s)
        raw = await read_json(
            receive, headers, self._options.max_body_bytes, self._options.body_timeout_s
        )
        body = chat_body(raw, self._options.max_messages)
        served = served_model(self._models, body.model)
        exchange.model = served.name
        if (body.n or 1) > self._options.max_choices:
            raise bad_request(f"more than {self._options.max_choices} choices", "n")
        extra = await _extra(raw, body, served)
        if served.runs:
            extra["began"] = exchange.runs.append
        options = body.stream_options
        requests = requests_of(body, extra, timeout_s, await named_decoder(body.decode))
        await check_schemas(requests[0])
        served.check(requests[0])
        return Asked(
            served,
            requests,
            timeout_s,
            self._options.keep_alive_s,
            bool(body.stream),
            bool(options and options.include_usage),
        )


def served_model(models: Mapping[str, Served], name: str) -> Served:
    """The model of that name. Raises: `Refused` with 404."""
    if name in models:
        return models[name]
    there = ", ".join(models)
    message = f"there is no model {name[:_LONGEST_NAME]!r}; there is: {there}"
    raise Refused(Problem(404, message, code="model_not_found", param="model"))


async def _extra(raw: Mapping[str, Any], body: ChatBody, served: Served) -> dict[str, Any]:
    """The further fields that go to the model. Raises: `Refused`; what asking the model raises."""
    extra = further_fields(raw)
    honoured = served.fields
    if not extra.keys() <= honoured:
        honoured |= frozenset((await served.client.capabilities()).extra_fields)
    check_honoured(extra, honoured)
    if "stream" in served.fields:
        extra["stream"] = bool(body.stream)
    return extra


def _timeout_s(header: str | None, longest_s: float) -> float:
    if header is None:
        return longest_s
    if not (header.isascii() and header.isdigit() and 0 < len(header) < 16 and int(header)):
        raise bad_request(f"the header {_TIMEOUT_HEADER} is a number of milliseconds")
    return min(int(header) / 1000, longest_s)
