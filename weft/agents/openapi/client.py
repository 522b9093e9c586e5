"""HTTP to allowed addresses, with bodies of bounded size, redirects and retries.

The checked address is the connected one, so a name cannot resolve to one address for the check and
to another for the connection. Certificates are verified for the name. A key is sent only to its own
server.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urljoin

import httpcore2

from weft.agents.openapi.address import AddressPolicy, ServerOrigin, origin_of
from weft.agents.openapi.operation import READING
from weft.agents.openapi.options import OpenApiOptions
from weft.agents.untrusted import printable
from weft.core.call_context import trace_headers
from weft.core.errors import BuildError, NotDone, ToolLimitError, ToolRaised
from weft.core.foreign import TRANSIENT_STATUSES, retry_after_s
from weft.core.ports import Clock

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
_BAD_ANSWER: Final = (httpcore2.ProtocolError, httpcore2.NetworkError, httpcore2.TimeoutException)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. `target` is path and query, percent-encoded."""

    method: str
    origin: ServerOrigin
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
    """Nothing was sent: the connection failed. `error` is the error for the caller."""

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.error = NotDone(message, hint=hint, retryable=retryable)


class HttpPool:
    """A pool of HTTP/1.1 connections. Proxies of the environment are not used."""

    def __init__(self, policy: AddressPolicy, most: int, resolver: Resolver | None = None) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            max_connections=most,
            keepalive_expiry=30.0,
            network_backend=_GuardedBackend(policy, resolver or resolve),
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
            "Accept-Encoding": "identity",  # compressed data could exceed every bound
            **trace_headers(),
            **request.headers,
        }
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        try:
            async with self._pool.stream(
                request.method, url, headers=raw, content=request.body
            ) as response:
                body = await _read(response, max_bytes)
                received = {
                    name.decode("latin-1").lower(): value.decode("latin-1")
                    for name, value in response.headers
                }
                return HttpAnswer(response.status, received, body)
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
            raise _not_reached(origin, str(error)) from error
        except _BAD_ANSWER as error:
            message = f"the connection to {origin.authority} broke: {error}"
            raise ToolRaised(message.removesuffix(": "), retryable=True) from error

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        await self._pool.aclose()


async def _read(response: httpcore2.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_stream():
        body += chunk
        if len(body) > max_bytes:
            raise ToolLimitError(f"the server answered more than {max_bytes:,} bytes")
    return bytes(body)


def _not_reached(origin: ServerOrigin, why: str) -> NotReached:
    message = f"cannot connect to {origin.authority}"
    return NotReached(f"{message}: {why}" if why else message, retryable=True)


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of `host`. Raises: `OSError`."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects only to addresses that the policy allows."""

    def __init__(self, policy: AddressPolicy, resolver: Resolver) -> None:
        self._policy = policy
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
        allowed = [each for each in addresses if self._policy.allows(each, host, port)]
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


_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_ANYWHERE: Final = frozenset({"accept"})
"""Headers that are also sent to another server after a redirect."""


class RequestSender:
    """Sends requests within the bounds of `options`."""

    def __init__(self, connections: HttpPool, options: OpenApiOptions, clock: Clock) -> None:
        self._connections = connections
        self._options = options
        self._clock = clock

    async def answer(self, request: HttpRequest, *, repeatable: bool = False) -> HttpAnswer:
        """The final answer, after redirects.

        Retries `repeatable` requests, after the delay that the server asks for.
        Raises: `ToolRaised`, `ToolLimitError`.
        """
        attempts = 1 + (self._options.retries if repeatable else 0)
        for attempt in range(attempts):
            last = attempt == attempts - 1
            pause_s = _FIRST_PAUSE_S * 2**attempt
            try:
                found = await self._follow_redirects(request)
            except NotReached as error:
                if last or not error.error.retryable:
                    raise error.error from error.__cause__
            except ToolRaised as error:
                error.retryable = error.retryable and repeatable
                if last or not error.retryable:
                    raise
            else:
                wanted_s = retry_after_s(found.headers, self._clock.wall())
                again = found.status in TRANSIENT_STATUSES and not last
                if not again or (wanted_s or 0) > _LONGEST_PAUSE_S:
                    return found
                pause_s = pause_s if wanted_s is None else wanted_s
            await self._clock.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    async def _follow_redirects(self, request: HttpRequest) -> HttpAnswer:
        for _ in range(self._options.redirects + 1):
            found = await self._connections.send(request, self._options.max_bytes)
            if found.status not in _REDIRECTS or "location" not in found.headers:
                return found
            request = _redirected(request, found.headers)
        raise ToolRaised(f"the server redirects more than {self._options.redirects} times")


def _redirected(request: HttpRequest, headers: Mapping[str, str]) -> HttpRequest:
    """The request after a redirect, without keys for another server.

    Raises: `ToolRaised`.
    """
    where = printable(headers["location"].partition("?")[0], 100)
    if request.method not in READING:
        raise ToolRaised(f"the server redirects a {request.method} to {where}")
    current = f"{request.origin.scheme}://{request.origin.authority}{request.target}"
    try:
        origin, parts = origin_of(urljoin(current, headers["location"]))
    except (BuildError, ValueError) as error:
        raise ToolRaised(f"the server redirects to {where}, which is no address") from error
    if request.origin.scheme == "https" and origin.scheme != "https":
        raise ToolRaised(f"the server redirects to {where}, which is not encrypted")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if origin == request.origin:
        return replace(request, target=target)
    headers = {name: text for name, text in request.headers.items() if name.lower() in _ANYWHERE}
    return HttpRequest(request.method, origin, target, headers)
