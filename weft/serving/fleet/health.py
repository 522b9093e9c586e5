"""Health of replicas: suspends broken and overloaded ones, and probes broken ones until recovery.

Has no access to the state of calls. One task per broken replica probes it until it answers again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from random import Random

from weft.core.errors import (
    ModelError,
    ModelOverloaded,
    ModelTimeout,
    ModelUnavailable,
    WeftError,
)
from weft.core.loggers import logger
from weft.core.ports.clock import Clock, Timer
from weft.core.ports.model import ModelClient, ModelRequest, Sampling
from weft.core.values import Message
from weft.serving.deadline import Deadline
from weft.serving.fleet.admission import FleetAdmission
from weft.serving.fleet.options import FleetOptions
from weft.serving.fleet.replica import FleetReplica

_logger = logger("models")
_PROBE_S = 15.0
_PROBE = ModelRequest(
    (Message("user", "ping"),),
    sampling=Sampling(max_tokens=1, temperature=0),
    priority=10**9,  # Ahead of whatever fills the server's own queue.
    timeout_s=_PROBE_S,
)

Locate = Callable[[int, bool], Awaitable[ModelClient | None]]
"""Current client of replica N; None where no newer address is known.

The flag says that calls wait, so that a replica that is not running may be started. Raises: a
`WeftError` that says why the replica cannot run.
"""


class ReplicaHealth:
    """Maintains `broken` and `resting` of every replica, and its client where it moved."""

    def __init__(
        self,
        replicas: Sequence[FleetReplica],
        options: FleetOptions,
        clock: Clock,
        admission: FleetAdmission,
        locate: Locate | None = None,
    ) -> None:
        self._replicas = replicas
        self._options = options
        self._clock = clock
        self._admission = admission
        self._locate = locate
        self._locating = 0
        self._replaced: list[ModelClient] = []
        self._jitter = Random()  # noqa: S311 - spreads clients in time, keeps no secret
        self._recoveries: set[asyncio.Task[None]] = set()
        self._outage: Timer | None = None
        self._given_up = False
        self._closed = False

    def check(self) -> None:
        """Raises: `ModelUnavailable` when no replica has answered for `outage_s`.

        With `locate`, the call waits instead, as a replica may be started for it.
        """
        if not self._replicas:
            self._begin_outage()
        if not self._given_up:
            return
        if self._locate is None:
            raise self._outage_error()
        self._given_up = False
        self._outage = self._clock.call_later(self._options.outage_s, self._give_up)
        for task in self._recoveries:
            task.cancel()  # they sleep between probes
        for replica in self._replicas:
            self._begin_recovery(replica)

    def succeeded(self, replica: FleetReplica) -> None:
        """A call on `replica` completed."""
        replica.overloads = 0
        replica.limit.succeeded()

    def overloaded(self, replica: FleetReplica, error: ModelOverloaded) -> None:
        """`replica` refused a call: it gets none for a while, and fewer at once afterwards."""
        if replica.resting is not None or replica.leaving is not None or self._closed:
            return  # The call was sent before the replica was suspended.
        replica.overloads += 1
        replica.limit.overloaded(replica.running)
        delay_s = max(self._backoff_s(replica.overloads), error.retry_after_s or 0.0)

        def resume() -> None:
            replica.resting = None
            self._admission.dispatch()

        replica.resting = self._clock.call_later(delay_s, resume)

    def failed(self, replica: FleetReplica, error: ModelError) -> None:
        """`replica` broke: suspend it until it answers again."""
        if replica.broken is not None or replica.leaving is not None or self._closed:
            return
        replica.broken = error
        _logger.warning("%s is put aside until it answers again: %s", replica.name, error.message)
        replica.prefixes.forget()
        self._begin_recovery(replica)
        self._begin_outage_if_all_broken()

    def joined(self) -> None:
        """A replica was added: an outage is over, and waiting calls may go there."""
        self._end_outage()
        self._admission.dispatch()

    def left(self, replica: FleetReplica) -> None:
        """A replica leaves: nothing waits for its recovery any longer."""
        if replica.resting is not None:
            replica.resting.cancel()
        if replica.recovery is not None:
            replica.recovery.cancel()
        self._begin_outage_if_all_broken()

    async def aclose(self) -> None:
        """End all tasks and timers for good, and close the clients of replicas that moved."""
        self._closed = True
        for replica in self._replicas:
            if replica.resting is not None:
                replica.resting.cancel()
        self._end_outage()
        recoveries = list(self._recoveries)
        for task in recoveries:
            task.cancel()
        if recoveries:
            await asyncio.wait(recoveries)
        for client in self._replaced:
            await client.aclose()

    def _begin_recovery(self, replica: FleetReplica) -> None:
        task = replica.recovery = asyncio.create_task(self._recover(replica))
        self._recoveries.add(task)
        task.add_done_callback(self._recoveries.discard)

    async def _recover(self, replica: FleetReplica) -> None:
        probes = 0
        while (error := await self._probe(replica)) is not None:
            replica.broken = error
            probes += 1
            if not await self._relocate(replica):
                await self._clock.sleep(self._backoff_s(probes))
        replica.broken = None
        self._end_outage()
        self._admission.dispatch()

    async def _relocate(self, replica: FleetReplica) -> bool:
        """True when the replica got a new client. If it cannot run, fails waiting calls."""
        if self._locate is None:
            return False
        needed = self._admission.waiting > 0
        self._locating += 1
        try:
            client = await self._locate(self._replicas.index(replica), needed)
        except WeftError as error:
            replica.broken = ModelUnavailable(error.message, hint=error.hint)
            if needed and all(other.broken for other in self._replicas):
                self._admission.refuse_all(self._outage_error)
            return False
        finally:
            self._locating -= 1
        if client is None:
            return False
        self._replaced.append(replica.client)  # calls may still use it
        replica.client = client
        replica.overloads = 0
        return True

    async def _probe(self, replica: FleetReplica) -> ModelError | None:
        """The replica's failure, if it does not answer. A refusal counts as an answer."""
        deadline = Deadline(_PROBE_S, f"the answer of {replica.name}")
        try:
            async with aclosing(replica.client.generate(_PROBE)) as stream:
                await deadline.wait(anext(stream))
        except (ModelUnavailable, ModelTimeout) as error:
            return error
        except ModelError:
            return None
        except Exception as error:  # noqa: BLE001 - a client of any kind, which does not answer
            return ModelUnavailable(f"{replica.name}: {type(error).__name__}: {error}")
        return None

    def _backoff_s(self, count: int) -> float:
        """Exponential, plus up to half of it at random, so that clients do not return at once."""
        longest_s = self._options.longest_backoff_s
        delay_s = min(self._options.backoff_s * 2.0 ** min(count - 1, 60), longest_s)
        return delay_s * (1 + self._jitter.random() / 2)

    def _give_up(self) -> None:
        if self._locating:  # a server may take longer to start than `outage_s`
            self._outage = self._clock.call_later(self._options.outage_s, self._give_up)
            return
        self._given_up = True
        self._admission.refuse_all(self._outage_error)

    def _begin_outage_if_all_broken(self) -> None:
        if all(other.broken or other.leaving for other in self._replicas):
            self._begin_outage()

    def _begin_outage(self) -> None:
        if self._outage is None:
            self._outage = self._clock.call_later(self._options.outage_s, self._give_up)

    def _end_outage(self) -> None:
        self._given_up = False
        if self._outage is not None:
            self._outage.cancel()
            self._outage = None

    def _outage_error(self) -> ModelUnavailable:
        errors = "; ".join(f"{replica.name}: {replica.broken}" for replica in self._replicas)
        errors = errors or "there is none"
        return ModelUnavailable(
            f"no replica answered for {self._options.outage_s:g} s: {errors}"
            if self._given_up
            else f"no replica answers: {errors}",
            hint="are the servers running?",
        )
