"""HTTP to addresses that may be reached, with bodies of bounded size.

The address that is checked is the one that is connected to, so a name cannot be resolved to one
address for the check and to another for the connection. Certificates are verified for the name.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpcore2

from weft.agents.openapi.address import Origin, Reach
from weft.core.errors import NotDone, ToolLimitError, ToolRaised
from weft.core.tracing import trace_headers

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
_BAD_ANSWER: Final = (httpcore2.ProtocolError, httpcore2.NetworkError, httpcore2.TimeoutException)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. `target` is path and query, percent-encoded."""

    method: str
    origin: Origin
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer. The names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NotReached(Exception):
    """Nothing was sent: no connection came about. `error` is what a caller is told."""

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.error = NotDone(message, hint=hint, retryable=retryable)


class Connections:
    """A pool of HTTP/1.1 connections. Proxies of the environment are not used."""

    def __init__(self, reach: Reach, most: int, resolver: Resolver | None = None) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            max_connections=most,
            keepalive_expiry=30.0,
            network_backend=_Guarded(reach, resolver or resolve),
        )

    async def send(self, request: HttpRequest, max_bytes: int) -> HttpAnswer:
        """Send `request` and read the answer. The caller limits the time.

        Raises: `NotReached`, `ToolRaised` for a broken connection, `ToolLimitError` for an answer
        of more than `max_bytes`.
        """
        origin = request.origin
        url = httpcore2.URL(
            scheme=origin.scheme.encode(),
            host=origin.host.encode(),
            port=origin.port,
            target=request.target.encode(),
        )
        headers = {
            "Host": origin.authority,
            "User-Agent": "weft",
            "Accept-Encoding": "identity",  # what is compressed outgrows every bound on its way
            **trace_headers(),
            **request.headers,
        }
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        try:
            async with self._pool.stream(
                request.method, url, headers=raw, content=request.body
            ) as response:
                body = await _read(response, max_bytes)
                told = {
                    name.decode("latin-1").lower(): value.decode("latin-1")
                    for name, value in response.headers
                }
                return HttpAnswer(response.status, told, body)
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
            raise _not_reached(origin, str(error)) from error
        except _BAD_ANSWER as error:
            message = f"the connection to {origin.authority} broke: {error}"
            raise ToolRaised(message.removesuffix(": "), retryable=True) from error

    async def aclose(self) -> None:
        """Close all connections. Harmless when repeated."""
        await self._pool.aclose()


async def _read(response: httpcore2.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_stream():
        body += chunk
        if len(body) > max_bytes:
            raise ToolLimitError(f"the server answered more than {max_bytes:,} bytes")
    return bytes(body)


def _not_reached(origin: Origin, why: str) -> NotReached:
    said = f"cannot connect to {origin.authority}"
    return NotReached(f"{said}: {why}" if why else said, retryable=True)


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of `host`. Raises: `OSError`."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class _Guarded(httpcore2.AsyncNetworkBackend):
    """Connects to addresses within reach only."""

    def __init__(self, reach: Reach, resolver: Resolver) -> None:
        self._reach = reach
        self._resolver = resolver
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = await self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"the name {host} is not known") from error
        allowed = [each for each in addresses if self._reach.allows(each, host, port)]
        if not allowed:
            raise NotReached(
                f"{host} leads to {', '.join(addresses[:3]) or 'nowhere'}, which is not public",
                hint="if that is meant, list its network in `private`; redirects never lead there",
            )
        failure: Exception | None = None
        for address in allowed:
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except httpcore2.ConnectError as error:
                failure = error
        raise failure or httpcore2.ConnectError()
