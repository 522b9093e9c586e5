"""Replicas that come and go: where they are, and fleets that follow them.

An `EndpointSource` says which addresses serve a model now. `follow` adds and removes the replicas
of a fleet accordingly, `autoscale` asks a `ReplicaPool` for more or fewer of them.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing, suppress
from typing import Final, Protocol
from urllib.parse import urlsplit

from weft.core.errors import ModelTimeout, ModelUnavailable
from weft.core.loggers import logger
from weft.core.ports.clock import Clock, SystemClock
from weft.core.ports.model import ModelClient
from weft.serving.deadline import Deadline
from weft.serving.fleet.fleet import Fleet
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.scaling import ScalingOptions, ScalingState, decide

_logger = logger("models")
_CLOCK: Final = SystemClock()
_DEFAULTS: Final = FleetOptions()


class EndpointSource(Protocol):
    """Tells the base URLs of a model's replicas."""

    def watch(self) -> AsyncGenerator[Collection[str], None]:
        """All base URLs, now and after each change, without end.

        A source that cannot be asked for a while tells nothing new. Raises: a `WeftError` where it
        will never be able to.
        """


class ReplicaPool(Protocol):
    """Starts and ends replicas, and tells where they are by an `EndpointSource`."""

    async def scale(self, replicas: int) -> None:
        """Have so many replicas some time from now; returns without waiting for them."""


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, for a port. Raises: `OSError`."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses that the resolver of this machine gives. Raises: `OSError`."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class DnsEndpoints:
    """Implements `EndpointSource`: each address of the host of `url` is a replica.

    Such a name is a headless service of Kubernetes, or a service of compose. It is resolved every
    `interval_s`. While that fails, the last addresses count.

    Raises: `ValueError` for https, whose certificates are not made out to addresses.
    """

    def __init__(
        self,
        url: str,
        *,
        interval_s: float = 10.0,
        clock: Clock = _CLOCK,
        resolve: Resolve = resolve,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError("the addresses of a name are found for http://HOST:PORT/... only")
        self._host, self._port = parts.hostname, parts.port or 80
        self._path = parts.path
        self._interval_s = interval_s
        self._clock = clock
        self._resolve = resolve

    async def watch(self) -> AsyncGenerator[Collection[str], None]:
        last: list[str] | None = None
        while True:
            try:
                addresses = await self._resolve(self._host, self._port)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                _logger.warning("%s is not resolved at present: %s", self._host, reason)
            else:
                urls = sorted({self._url(address) for address in addresses})
                if urls != last:
                    last = urls
                    yield urls
            await self._clock.sleep(self._interval_s)

    def _url(self, address: str) -> str:
        host = f"[{address}]" if ":" in address else address
        return f"http://{host}:{self._port}{self._path}"


async def follow(
    fleet: Fleet, source: EndpointSource, client: Callable[[str], ModelClient]
) -> None:
    """Keep the replicas of `fleet` those of `source`, until cancelled.

    `client` makes the client of a base URL. A replica that is gone gets no more calls; those on it
    end there, or continue elsewhere where their streams break. Raises: what `source` raises.
    """
    known: dict[str, ModelClient] = {}
    try:
        async with asyncio.TaskGroup() as leaving, aclosing(source.watch()) as changes:
            async for urls in changes:
                for url in [url for url in known if url not in urls]:
                    _logger.info("a replica is gone: %s", url)
                    leaving.create_task(fleet.remove(known.pop(url)))
                for url in sorted(set(urls) - known.keys()):
                    _logger.info("a replica is there: %s", url)
                    known[url] = client(url)
                    fleet.add(known[url])
    except ExceptionGroup as group:
        raise group.exceptions[0] from group


async def autoscale(
    fleet: Fleet,
    pool: ReplicaPool,
    options: ScalingOptions,
    *,
    interval_s: float = 5.0,
    clock: Clock = _CLOCK,
) -> None:
    """Ask `pool` for as many replicas as the calls of `fleet` need, until cancelled.

    The pool starts with `options.least`. Raises: what the pool raises.
    """
    state, replicas = ScalingState(), options.least
    await pool.scale(replicas)
    while True:
        await clock.sleep(interval_s)
        before = replicas
        state, replicas = decide(options, state, fleet.load(), replicas, clock.now())
        if replicas != before:
            _logger.info("replicas of %s: %d, %d before", fleet.model, replicas, before)
            await pool.scale(replicas)


class FollowingFleet(Fleet):
    """A fleet that follows `source` from its first use until it is closed.

    `client` makes the client of a base URL. Without a replica calls wait, for `outage_s` at most.
    """

    def __init__(
        self,
        model: str,
        source: EndpointSource,
        client: Callable[[str], ModelClient],
        options: FleetOptions = _DEFAULTS,
        *,
        clock: Clock = _CLOCK,
    ) -> None:
        super().__init__((), options, clock=clock, model=model)
        self._source = source
        self._client = client
        self._wait_s = options.outage_s
        self._following: asyncio.Task[None] | None = None
        self._first = asyncio.Event()

    def add(self, client: ModelClient) -> None:
        super().add(client)
        self._first.set()

    async def aclose(self) -> None:
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError, Exception):  # calls have raised it
                await self._following
        await super().aclose()

    async def _known(self) -> None:
        self._check_open()
        try:
            await Deadline(self._wait_s, f"the first replica of {self.model}").wait(
                self._first.wait()
            )
        except ModelTimeout as error:
            raise ModelUnavailable(error.message, hint="are the servers running?") from error
        self._check_open()

    def _check_open(self) -> None:
        super()._check_open()
        if self._following is None:
            self._following = asyncio.create_task(follow(self, self._source, self._client))
            self._following.add_done_callback(self._followed)
        elif self._following.done() and not self._following.cancelled():
            raise self._unknown(self._following)

    def _followed(self, following: asyncio.Task[None]) -> None:
        """The source has ended, and no replica will come: nobody waits for one."""
        self._first.set()
        if not following.cancelled() and not self.load().usable:
            self._state.admission.refuse_all(lambda: self._unknown(following))

    def _unknown(self, following: asyncio.Task[None]) -> ModelUnavailable:
        error = following.exception()
        unknown = ModelUnavailable(f"the replicas of {self.model} are unknown: {error}")
        unknown.__cause__ = error
        return unknown
