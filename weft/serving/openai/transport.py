"""HTTP to one endpoint: pages, and answers as server-sent events. Does not interpret their bytes.

Everything is bounded before it is stored: a page, one event, never the whole stream. This, closing
a stream at any point, and full control of headers are why weft uses no client library. Retries are
the engine's task.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import httpx2

from weft.core.call_context import trace_headers
from weft.core.errors import ModelOutputError, ModelUnavailable, WeftError
from weft.serving.openai.endpoint import Endpoint
from weft.serving.openai.failure import convert, status_error

_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventParser:
    """Returns the data of server-sent events, from bytes as they arrive.

    Memory is bounded by `max_event_bytes`, the size limit of one event.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._max = max_event_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._partial_end = b""
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that `chunk` completes, in order.

        Raises: `ModelOutputError` when one event is larger than allowed.
        """
        chunk = self._partial_end + chunk
        # A CR at the very end may be half of a CRLF.
        self._partial_end = chunk[-1:] if chunk.endswith(b"\r") else b""
        first, *rest = _LINE_END.split(chunk.removesuffix(b"\r"))
        events: list[bytes] = []
        self._grow(first)
        for piece in rest:
            self._end_line(events)
            self._grow(piece)
        return events

    def end(self) -> list[bytes]:
        """The last event, if the stream ended without the blank line that closes it."""
        events: list[bytes] = []
        self._end_line(events)
        self._dispatch(events)
        return events

    def _grow(self, piece: bytes) -> None:
        self._line += piece
        self._size += len(piece)
        if self._size > self._max:
            raise ModelOutputError(
                f"the server sent one event of more than {self._max:,} bytes", retryable=False
            )

    def _end_line(self, events: list[bytes]) -> None:
        line = bytes(self._line)
        self._line.clear()
        if not line:
            self._dispatch(events)
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        else:
            self._size -= len(line)

    def _dispatch(self, events: list[bytes]) -> None:
        if self._data:
            events.append(b"\n".join(self._data))
        self._data.clear()
        self._size = 0


_MAX_BODY_BYTES = 4 * 2**20
_MAX_EVENT_BYTES = 4 * 2**20
_NO_PAGE = frozenset({404, 405, 501})


def connection_pool(
    endpoint: Endpoint,
    prepare: Callable[[httpx2.Request], Awaitable[None]],
    guard: Callable[[httpx2.Response], Awaitable[None]],
) -> httpx2.AsyncClient:
    """A pool of connections to `endpoint`.

    `prepare` completes every request, `guard` sees every response before its body is read.
    """
    idle = endpoint.idle_timeout_s
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(idle, connect=endpoint.connect_timeout_s, pool=None),
        limits=httpx2.Limits(
            max_connections=endpoint.connections,
            max_keepalive_connections=endpoint.connections,
        ),
        follow_redirects=False,
        trust_env=not endpoint.loopback,
        event_hooks={"request": [prepare], "response": [guard]},
    )


class Transport:
    """HTTP to `endpoint`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._http = connection_pool(endpoint, self._authorise, bound_response)

    async def get(self, url: str) -> bytes | None:
        """The body of a page, or None if the page does not exist.

        Raises: `ModelError` for another status; the HTTP library's errors (see `failure`).
        """
        return self._content(await self._http.get(url))

    def _content(self, response: httpx2.Response) -> bytes | None:
        if response.is_success:
            return response.content
        if response.status_code in _NO_PAGE:
            return None
        raise status_error(self._endpoint, response.status_code, response.text, response.headers)

    async def post(self, url: str, body: Mapping[str, Any]) -> bytes | None:
        """The page's answer to `body`, or None if the page does not exist. Raises: as `get`."""
        return self._content(await self._http.post(url, json=body))

    async def find(self, url: str) -> bytes | None:
        """The body of an optional page, or None on any failure."""
        try:
            return await self.get(url)
        except (httpx2.HTTPError, WeftError):
            return None

    def failure(self, error: Exception, models: Sequence[str]) -> WeftError:
        """Any exception of this transport as a `WeftError`; `models` are those the server has."""
        return convert(error, self._endpoint, models)

    async def answer(
        self, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Post `body`, and yield the data of the events that come back. Closing ends the stream.

        Opens no connection before the first event is requested.
        """
        path = "completions" if "prompt" in body else "chat/completions"
        async with self._http.stream(
            "POST", self._endpoint.url(path), json={**body, "stream": True}, headers=headers
        ) as response:
            if not response.is_success:
                await response.aread()
                response.raise_for_status()
            async with aclosing(_payloads(response)) as payloads:
                async for payload in payloads:
                    yield payload

    async def aclose(self) -> None:
        """Close all connections; streams that are still open break."""
        await self._http.aclose()

    async def _authorise(self, request: httpx2.Request) -> None:
        if self._endpoint.api_key:
            request.headers["authorization"] = f"Bearer {self._endpoint.api_key}"
        add_headers(request, self._endpoint)


def add_headers(request: httpx2.Request, endpoint: Endpoint) -> None:
    """Add the headers of every request to `endpoint`, besides its key."""
    # Compressed bytes would outgrow every limit when decompressed.
    request.headers["accept-encoding"] = "identity"
    request.headers.update(trace_headers())
    request.headers.update(endpoint.headers)


async def _payloads(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    if response.headers.get("content-type", "").startswith("application/json"):
        yield await response.aread()
        return
    parser = EventParser(_MAX_EVENT_BYTES)
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            for payload in parser.feed(chunk):
                yield payload
    for payload in parser.end():
        yield payload


async def bound_response(response: httpx2.Response) -> None:
    """Bound the memory of a response. Event streams are bounded event by event, by their reader."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ModelUnavailable("the server sent compressed data, which was not asked for")
    if not is_event_stream(response):
        response.stream = _BoundedStream(response.stream)


def is_event_stream(response: httpx2.Response) -> bool:
    """Whether an answer is streamed as server-sent events."""
    streamed: bool = response.headers.get("content-type", "").startswith("text/event-stream")
    return response.is_success and streamed


class BoundedEvents(httpx2.AsyncByteStream):
    """The bytes of an event stream for a reader that does not bound an event's size itself.

    Raises: `ModelOutputError` while reading, for an event that is too large.
    """

    def __init__(self, inner: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> None:
        assert isinstance(inner, httpx2.AsyncByteStream)
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parser = EventParser(_MAX_EVENT_BYTES)
        async for chunk in self._inner:
            parser.feed(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> None:
        assert isinstance(inner, httpx2.AsyncByteStream)
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > _MAX_BODY_BYTES:
                raise ModelOutputError(
                    f"the server sent a body of more than {_MAX_BODY_BYTES:,} bytes",
                    retryable=False,
                )
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
