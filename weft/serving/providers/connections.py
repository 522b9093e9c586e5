"""The HTTP client that a vendor's library uses: bounded, without redirects, closable per answer."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import httpx2

from weft.serving.openai.endpoint import Endpoint
from weft.serving.openai.transport import (
    BoundedEvents,
    add_headers,
    bound_response,
    connection_pool,
    is_event_stream,
)

REQUEST_ID: Final = "x-request-id"
_KEYS: Final = ("authorization", "x-api-key", "x-goog-api-key")
_MACHINE: Final = "x-stainless-"
"""The prefix of headers in which a library describes the machine that it runs on."""


class ProviderConnections:
    """A pool of connections, given to the library in place of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._open: dict[str, httpx2.Response] = {}
        self.http = connection_pool(endpoint, self._prepare, self._guard)

    async def end(self, request_id: str) -> None:
        """Close the connection of that request's answer, wherever its reader stopped."""
        response = self._open.pop(request_id, None)
        if response is not None:
            with suppress(httpx2.HTTPError, RuntimeError):
                await response.aclose()

    async def aclose(self) -> None:
        """Close all connections; streams that are still open break."""
        await self.http.aclose()

    async def _prepare(self, request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower().startswith(_MACHINE)]:
            del request.headers[name]
        if not self._endpoint.api_key:  # the library insists on one
            for name in _KEYS:
                request.headers.pop(name, None)
        add_headers(request, self._endpoint)
        request.extensions["timeout"] = self.http.timeout.as_dict()

    async def _guard(self, response: httpx2.Response) -> None:
        await bound_response(response)
        if is_event_stream(response):
            response.stream = BoundedEvents(response.stream)
        request_id = response.request.headers.get(REQUEST_ID)
        if request_id is not None:
            self._open[request_id] = response
