"""Endpoints through which people answer what recorded runs ask. Knows no run and no journal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse

from weft.core.errors import StoreError, UnknownReference
from weft.serving.gateway.options import GatewayOptions
from weft.serving.gateway.problem import Problem, Refused, bad_request
from weft.serving.gateway.reading import read_json

_LONGEST_NAME = 4096


class People(Protocol):
    """The questions of runs. Its methods block, briefly."""

    def questions(self, run: str) -> Sequence[Mapping[str, Any]]:
        """What a run asks: node, question and schema of each. Raises: `UnknownReference`."""

    def answer(self, run: str, node: str, value: Any) -> bool:
        """Answer a question; true when the run goes on with it at once, false when it is resumed.

        Raises: `UnknownReference` when the node asks nothing, `InputError` when it does not fit.
        """


class PeopleEndpoints:
    """`GET /v1/runs/{run}/questions` and `POST /v1/runs/{run}/answers`."""

    def __init__(self, people: People, options: GatewayOptions) -> None:
        self._people = people
        self._options = options

    async def questions(self, request: Request) -> JSONResponse:
        """What a run asks, the oldest question first."""
        run = request.path_params["run"]
        found = await self._told(self._people.questions, run)
        return JSONResponse({"object": "list", "run": run, "data": list(found)})

    async def answer(self, request: Request) -> JSONResponse:
        """Take `{"node": N, "value": V}`: 202 when it is in the journal."""
        most, within_s = self._options.max_body_bytes, self._options.body_timeout_s
        body = await read_json(request.receive, request.headers, most, within_s)
        if not isinstance(body, dict) or not isinstance(body.get("node"), str):
            raise bad_request("an answer is an object with `node` and `value`", "node")
        if "value" not in body or len(body["node"]) > _LONGEST_NAME:
            raise bad_request("an answer has a `value`", "value")
        run = request.path_params["run"]
        taken = await self._told(self._people.answer, run, body["node"], body["value"])
        answer = {"run": run, "node": body["node"], "taken": taken}
        return JSONResponse(answer, 202)

    async def _told(self, ask: Any, *arguments: Any) -> Any:
        try:
            return await asyncio.to_thread(ask, *arguments)
        except UnknownReference as error:
            raise Refused(Problem(404, error.message, code="not_found")) from None
        except StoreError:
            said = "the journal cannot be used"
            raise Refused(Problem(503, said, "server_error", "unavailable")) from None
