"""Several replicas of one model as one client that schedules the calls of programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import fields, replace
from itertools import count
from typing import Any, TypeVar

from weft.core.errors import (
    CapabilityError,
    ModelError,
    ModelOverloaded,
    ModelTimeout,
    ModelUnavailable,
)
from weft.core.ports.clock import Clock, SystemClock
from weft.core.ports.model import (
    Capabilities,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Sampling,
    Tokenizing,
)
from weft.core.values import Completion, Message
from weft.serving.deadline import Deadline
from weft.serving.fleet.admission import FleetAdmission
from weft.serving.fleet.call import FleetCall, FleetState, warm
from weft.serving.fleet.health import Locate, ReplicaHealth
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.order import ProgramOrder, QueuedCall, group_of
from weft.serving.fleet.replica import Chain, FleetReplica, chain_of
from weft.serving.fleet.stats import FleetLoad, FleetStats, fleet_begins, fleet_ends


async def common(clients: Sequence[ModelClient]) -> Capabilities:
    """Capabilities that all of `clients` share, of those that answer.

    Raises: the error of the last client, when none answers; `ModelUnavailable` without clients.
    """
    if not clients:
        raise _no_replica()
    found: list[Capabilities] = []
    for number, client in enumerate(clients, start=1):
        try:
            found.append(await client.capabilities())
        except (ModelUnavailable, ModelOverloaded):
            if number == len(clients) and not found:
                raise
    return intersection(found)


def intersection(found: Sequence[Capabilities]) -> Capabilities:
    """Flags, adapters and layouts that all have, and the smallest numbers."""
    flags: dict[str, Any] = {
        field.name: all(getattr(one, field.name) for one in found)
        for field in fields(Capabilities)
        if isinstance(field.default, bool)
    }
    contexts = [one.max_context_tokens for one in found if one.max_context_tokens is not None]
    first, *others = found
    return Capabilities(
        **flags,
        top_logprobs=min(one.top_logprobs for one in found),
        layouts=tuple(each for each in first.layouts if all(each in one.layouts for one in others)),
        adapters=tuple(
            each for each in first.adapters if all(each in one.adapters for one in others)
        ),
        max_context_tokens=min(contexts, default=None),
        extra_fields=tuple(
            each for each in first.extra_fields if all(each in one.extra_fields for one in others)
        ),
        sampling=first.sampling if all(one.sampling == first.sampling for one in others) else None,
    )


R = TypeVar("R")


async def of_any(replicas: Sequence[FleetReplica], ask: Callable[[Tokenizing], Awaitable[R]]) -> R:
    """The first answer of `replicas`; those that are not usable are asked last.

    Raises: `CapabilityError` where a client does not tokenize; the error of the last replica;
    `ModelUnavailable` without replicas.
    """
    if not replicas:
        raise _no_replica()
    failed: ModelError | None = None
    for replica in sorted(replicas, key=lambda one: not one.usable):
        client = replica.client
        if not isinstance(client, Tokenizing):
            raise CapabilityError(f"{replica.name} does not tokenize")
        try:
            return await ask(client)
        except (ModelUnavailable, ModelOverloaded) as error:
            failed = error
    assert failed is not None
    raise failed


def _no_replica() -> ModelUnavailable:
    return ModelUnavailable("there is no replica at present", hint="are the servers running?")


T = TypeVar("T")
_DEFAULTS = FleetOptions()
_CLOCK = SystemClock()


class Fleet:
    """Implements `ModelClient` and `Tokenizing` over clients of replicas that serve one model.

    Calls wait here for a replica, those of the program nearest to its end first (`order`). They are
    routed to the replica that caches their prefix, after it is computed (`admission`). A call whose
    replica breaks continues on another one from its tokens so far (`resume`). A call whose replica
    is overloaded is sent again. Closing a stream closes the replica's stream at once. Time in the
    queue counts towards `timeout_s`. A fleet belongs to the event loop that uses it first, and owns
    its clients. `locate` finds the new address of a replica that does not answer (see `Locate`).
    Replicas come and go by `add` and `remove`, though not in a fleet with `locate`; one that begins
    without any has `model`. Without a replica calls wait, for `outage_s` at most.

    Raises: `ValueError` without replicas and `model`, or for models of different names.
    """

    def __init__(
        self,
        replicas: Sequence[ModelClient],
        options: FleetOptions = _DEFAULTS,
        *,
        clock: Clock = _CLOCK,
        locate: Locate | None = None,
        model: str | None = None,
    ) -> None:
        names = sorted({client.model for client in replicas} | ({model} if model else set()))
        if len(names) != 1:
            raise ValueError(f"a fleet has replicas of one model, not of: {', '.join(names)}")
        self._model = names[0]
        self._options = options
        self._clock = clock
        self._stats = FleetStats()
        self._names = count()
        self._replicas = [self._named(client) for client in replicas]
        # On the wall clock, so that all clients of a server send priorities on one scale.
        epoch_s = clock.now() - clock.wall().timestamp()
        self._order = ProgramOrder(options, epoch_s)
        admission = FleetAdmission(self._replicas, options, clock, self._stats)
        health = ReplicaHealth(self._replicas, options, clock, admission, locate)
        self._state = FleetState(admission, health, options, self._stats)
        self._closed = False
        fleet_begins(self)

    @property
    def model(self) -> str:
        return self._model

    def stats(self) -> FleetStats:
        """Counts so far; a copy."""
        return replace(self._stats)

    def load(self) -> FleetLoad:
        """Current load."""
        members = [replica for replica in self._replicas if replica.leaving is None]
        broken = sum(replica.broken is not None for replica in members)
        usable = sum(replica.usable for replica in members)
        return FleetLoad(
            self._state.admission.waiting,
            sum(replica.running for replica in self._replicas),
            usable,
            len(members) - usable - broken,
            broken,
        )

    def add(self, client: ModelClient) -> None:
        """Take a further replica, which waiting calls may use at once. The fleet owns it.

        Raises: `ValueError` for another model; `ModelUnavailable` when the fleet is closed.
        """
        self._check_open()
        if client.model != self._model:
            raise ValueError(f"a fleet of {self._model} has no replica of {client.model}")
        self._replicas.append(self._named(client))
        self._state.health.joined()

    async def remove(self, client: ModelClient) -> None:
        """Give a replica no more calls, wait for those on it, and close its client.

        Calls whose stream breaks meanwhile continue on another replica. Raises: `ValueError` for a
        client that the fleet does not have.
        """
        found = [one for one in self._replicas if one.client is client and one.leaving is None]
        if not found:
            raise ValueError(f"the fleet of {self._model} has no replica {client!r}")
        (replica,) = found
        replica.leaving = asyncio.Event()
        if not replica.running:
            replica.leaving.set()
        self._state.health.left(replica)
        self._state.admission.dispatch()
        await replica.leaving.wait()
        if not self._closed:
            self._replicas.remove(replica)
            await client.aclose()

    async def capabilities(self) -> Capabilities:
        """Capabilities that all replicas share, of those that answer.

        Raises: the error of the last replica, when none answers.
        """
        await self._known()
        return await common([replica.client for replica in self._replicas])

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self._check_open()
        ended = False
        try:
            deadline = Deadline(request.timeout_s, f"the answer of {self._model}")
            call = FleetCall(self._state, request, self._ticket(request), deadline)
            async with aclosing(call.events()) as events:
                async for event in events:
                    ended = isinstance(event, Completion)
                    yield event
        except ModelError as error:
            ended = True
            self._stats.timed_out += isinstance(error, ModelTimeout)
            if self._closed:
                raise self._closed_error() from None
            raise
        finally:
            self._stats.cancelled += not ended

    async def warm(self, request: ModelRequest) -> None:
        """Compute the prompt of `request` on the replica of its program, without an answer.

        For a part of a prompt that is known before the rest. Only uses a replica that is at most
        half busy while no call waits. Otherwise, or when the replica fails, it does nothing.

        Raises: `ModelRequestError`, `CapabilityError`, `ModelNotFound`; `ModelUnavailable` when
        the fleet is closed.
        """
        self._check_open()
        if self._options.warm_prefix:
            request = replace(
                request,
                sampling=Sampling(max_tokens=1, temperature=0),
                schema=None,
                grammar=None,
                tool_choice="auto",
                logprobs=False,
                top_logprobs=0,
            )
            await warm(self._state, request, self._ticket(request, warm=True))

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        """See `Tokenizing`; asks further replicas when one does not answer."""
        return await self._of_any(lambda client: client.encode(text, special=special))

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        return await self._of_any(
            lambda client: client.encode_chat(messages, chat_template_kwargs=chat_template_kwargs)
        )

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return await self._of_any(lambda client: client.decode(token_ids))

    async def special_token(self, text: str) -> int | None:
        return await self._of_any(lambda client: client.special_token(text))

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        fleet_ends(self)
        self._state.admission.close(self._closed_error)
        await self._state.health.aclose()
        async with AsyncExitStack() as closing:
            for replica in self._replicas:
                closing.push_async_callback(replica.client.aclose)
                if replica.leaving is not None:
                    replica.leaving.set()

    def _named(self, client: ModelClient) -> FleetReplica:
        name = f"replica {next(self._names)} of {client!r}"
        return FleetReplica(client, self._options.in_flight, name)

    def _ticket(self, request: ModelRequest, warm: bool = False) -> QueuedCall:
        rank = self._order.rank(request, self._clock.now(), warm)
        uses_prefixes = self._options.affinity or self._options.warm_prefix
        chain: Chain = chain_of(request) if uses_prefixes else ()
        return QueuedCall(rank, chain, group_of(request))

    async def _of_any(self, ask: Callable[[Tokenizing], Awaitable[T]]) -> T:
        self._check_open()
        await self._known()
        try:
            return await of_any(self._replicas, ask)
        except ModelError:
            self._check_open()
            raise

    async def _known(self) -> None:
        """Wait until replicas are known, where that takes time. Raises: `ModelUnavailable`."""

    def _check_open(self) -> None:
        if self._closed:
            raise self._closed_error()

    def _closed_error(self) -> ModelUnavailable:
        return ModelUnavailable(f"the fleet of {self._model} is closed", retryable=False)
