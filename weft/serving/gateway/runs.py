"""The endpoints of queued runs: submit one, look at one, cancel one; and of their workers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from weft.core.errors import RunExists, StoreError, UnknownReference
from weft.serving.gateway.json_body import read_json
from weft.serving.gateway.options import GatewayOptions
from weft.serving.gateway.problem import ApiProblem, RequestRefused, bad_request

_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "flow": str,
    "inputs": dict,
    "key": str,
    "priority": int,
    "at": str,
    "queue": str,
    "concurrency_limit": int,
    "concurrency_key": str,
}
"""The fields of a submission."""


class RunSubmissions(Protocol):
    """Queued runs in a journal that any process may have. Its methods block briefly."""

    def submit(self, flow: str, inputs: Mapping[str, Any], terms: Mapping[str, Any]) -> str:
        """Submit a run; its id. `terms`: the other fields of a submission.

        Raises: `UnknownReference` for the workflow, `InputError`, `RunExists`, `StoreError`.
        """

    def look(self, run: str) -> Mapping[str, Any]:
        """The run's status, and its outputs once it has ended. Raises: `UnknownReference`."""

    def cancel(self, run: str) -> str:
        """End a run: how it has ended, now or before; `running` where its process ends it soon.

        Raises: `UnknownReference`.
        """

    def signal(self, run: str, node: str, value: Any) -> bool:
        """Send a value to an `ask` node, also before it asks; true when a process has the run.

        Raises: `UnknownReference`; `InputError` for a misfit, and once the node or run has ended.
        """

    def workers(self) -> Sequence[Mapping[str, Any]]:
        """The workers that are alive, as JSON data."""


class SubmissionEndpoints:
    """`POST /v1/runs`; a look at one, its cancellation, its signals; and `GET /v1/workers`."""

    def __init__(self, runs: RunSubmissions, options: GatewayOptions) -> None:
        self._runs = runs
        self._options = options

    def routes(self) -> list[Route]:
        """The routes. Add them behind longer ones below `/v1/runs/{run}`."""
        return [
            Route("/v1/runs", self.submit, methods=["POST"]),
            Route("/v1/workers", self.workers, methods=["GET"]),
            Route("/v1/runs/{run:path}/signals", self.signal, methods=["POST"]),
            Route("/v1/runs/{run:path}/cancel", self.cancel, methods=["POST"]),
            Route("/v1/runs/{run:path}", self.look, methods=["GET"]),
        ]

    async def submit(self, request: Request) -> JSONResponse:
        """Take `{"flow": NAME, "inputs": {...}}` and terms: 202 with the run's URL.

        The header `Idempotency-Key` is the field `key`: repeated, it is the same run.
        """
        most, within_s = self._options.max_body_bytes, self._options.body_timeout_s
        body = await read_json(request.receive, request.headers, most, within_s)
        fields = _checked(body)
        key = request.headers.get("idempotency-key")
        if key is not None and fields.setdefault("key", key) != key:
            raise bad_request("`key` and the header Idempotency-Key differ", "key")
        flow, inputs = fields.pop("flow"), fields.pop("inputs", {})
        run = await in_thread(self._runs.submit, flow, inputs, fields)
        url = f"/v1/runs/{quote(run)}"
        return JSONResponse({"run": run, "url": url}, 202, {"location": url})

    async def look(self, request: Request) -> JSONResponse:
        """The run, from its record: whichever process executes it."""
        run = await in_thread(self._runs.look, request.path_params["run"])
        return JSONResponse({"object": "run", **run})

    async def signal(self, request: Request) -> JSONResponse:
        """Take `{"node": N, "value": V}`: 202 when it is in the journal."""
        most, within_s = self._options.max_body_bytes, self._options.body_timeout_s
        body = await read_json(request.receive, request.headers, most, within_s)
        if not isinstance(body, dict) or not isinstance(body.get("node"), str):
            raise bad_request("a signal is an object with `node` and `value`", "node")
        if body.keys() != {"node", "value"}:
            raise bad_request("a signal has a `node`, a `value` and nothing else", "value")
        run = request.path_params["run"]
        taken = await in_thread(self._runs.signal, run, body["node"], body["value"])
        return JSONResponse({"run": run, "node": body["node"], "taken": taken}, 202)

    async def workers(self, request: Request) -> JSONResponse:
        """The workers that are alive."""
        del request
        return JSONResponse({"object": "list", "data": await in_thread(self._runs.workers)})

    async def cancel(self, request: Request) -> JSONResponse:
        """End the run: 200 once it is cancelled, 202 where its process ends it soon.

        A run that ended otherwise is a conflict (409), with its `status`.
        """
        run = request.path_params["run"]
        status = await in_thread(self._runs.cancel, run)
        seen = {"run": run, "ended": status != "running", "status": status}
        if status in ("cancelled", "running"):
            return JSONResponse(seen, 200 if seen["ended"] else 202)
        text = f"the run has ended: {status}"
        return JSONResponse({**seen, **ApiProblem(409, text, code="run_ended").body()}, 409)


def _checked(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict) or not isinstance(body.get("flow"), str):
        raise bad_request('a submission is an object with the `flow`: {"flow": "brief"}', "flow")
    for name, value in body.items():
        kind = _KINDS.get(name)
        if kind is None:
            fields = ", ".join(_KINDS)
            raise bad_request(f"there is no field `{name:.80}`; there are: {fields}", name[:80])
        if not isinstance(value, kind) or isinstance(value, bool):
            raise bad_request(f"`{name}` has a value of the wrong type", name)
    return dict(body)


async def in_thread(call: Any, *arguments: Any) -> Any:
    """What a blocking call about runs returns. Raises: `RequestRefused` for unknown names."""
    try:
        return await asyncio.to_thread(call, *arguments)
    except UnknownReference as error:
        raise RequestRefused(ApiProblem(404, error.message, code="not_found")) from None
    except StoreError as error:
        if isinstance(error, RunExists):
            raise
        text = "the journal cannot be used"
        raise RequestRefused(ApiProblem(503, text, "server_error", "unavailable")) from None
