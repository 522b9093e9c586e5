"""MCP over streamable HTTP: the SDK's transport, on a client with bounded responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from weft.agents.mcp.result import TOO_LARGE

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from weft.agents.mcp.server import McpServer
    from weft.agents.untrusted import Secrets

_CONNECT_S: Final = 15.0


@asynccontextmanager
async def http_transport(
    server: McpServer, secrets: Secrets, answered: Callable[[int], None]
) -> AsyncIterator[TransportStreams]:
    """The SDK's transport to the server's url; `answered` receives the status of each response."""
    assert server.url is not None
    headers = {header: secrets[name] for header, name in server.headers_from.items()}
    if server.api_key_env is not None:
        headers["authorization"] = f"Bearer {secrets[server.api_key_env]}"

    async def watch(response: httpx2.Response) -> None:
        answered(response.status_code)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _BoundedByteStream(response.stream, server.max_message_bytes)

    async with (
        httpx2.AsyncClient(
            # Compressed bodies could exceed every limit when they are expanded.
            headers={**headers, "accept-encoding": "identity"},
            timeout=httpx2.Timeout(_CONNECT_S, read=None),
            trust_env=not server.loopback,
            event_hooks={"response": [watch]},
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=server.max_message_bytes
        ) as streams,
    ):
        yield streams


class _BoundedByteStream(httpx2.AsyncByteStream):
    """A response body of at most `limit` bytes."""

    def __init__(self, inner: httpx2.SyncByteStream | httpx2.AsyncByteStream, limit: int) -> None:
        assert isinstance(inner, httpx2.AsyncByteStream)
        self._inner = inner
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > self._limit:
                raise httpx2.StreamError(TOO_LARGE)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
