"""One life of a server: started, healthy, watched, ended. Ends with nothing left of it.

Does not know what comes after, nor the registry.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from weft.core.errors import StartError
from weft.serving.vllm.diagnosis import diagnose
from weft.serving.vllm.guarded import Guarded
from weft.serving.vllm.health import healthy
from weft.serving.vllm.launch import Launch
from weft.serving.vllm.log_file import LogFile
from weft.serving.vllm.ports import reachable
from weft.serving.vllm.processes import Mark
from weft.serving.vllm.restarts import Restarts
from weft.serving.vllm.spec import ServeSpec
from weft.serving.vllm.startup import Startup


@dataclass(frozen=True, slots=True)
class Care:
    """How a server is watched. All in seconds, but `failures`: unanswered questions in a row.

    `teardown_s` is what an engine gets to end beyond the time for its requests; `restarts` makes
    the policy of one replica.
    """

    start_timeout_s: float = 1800.0
    poll_s: float = 0.25
    interval_s: float = 5.0
    timeout_s: float = 10.0
    failures: int = 3
    teardown_s: float = 10.0
    restarts: Callable[[], Restarts] = Restarts


@dataclass(frozen=True, slots=True)
class Order:
    """What one replica is made from. `make` gives the command for a port."""

    spec: ServeSpec
    number: int
    mark: Mark
    make: Callable[[int], Launch]
    care: Care = field(default_factory=Care)


class Life:
    """One process of a server on `port`. `ready` is told its number once it is healthy."""

    def __init__(
        self,
        order: Order,
        port: int,
        log: LogFile,
        show: Callable[[str], None],
        ready: Callable[[int | None], None],
    ) -> None:
        self._order = order
        self._port = port
        self._log = log
        self._show = show
        self._ready = ready
        self._host = reachable(order.spec.host)
        self._startup: Startup | None = Startup()
        self._ending = False
        self._guarded = Guarded(order.mark, order.number, self._line)

    async def run(self) -> str:
        """Returns why it ended, once nothing of it is left. Raises: `StartError`, `SpecError`."""
        self._log.last.clear()
        launch = self._order.make(self._port)
        guarded = self._guarded
        try:
            await guarded.start(launch.argv, launch.env)
            if self._ending:  # it was told before there was anybody to tell
                guarded.kill()
            if not await self._comes_up():
                return "stopped"
            self._startup = None
            self._ready(guarded.engine)
            return await self._watch()
        finally:
            await guarded.close()

    def stop(self, grace_s: float) -> None:
        """Ask it to end; requests in flight have `grace_s` to finish. At once while starting."""
        self._ending = True
        self._guarded.stop(grace_s if self._startup is None else 0.0)

    def kill(self) -> None:
        """End it now."""
        self._ending = True
        self._guarded.kill()

    def _line(self, text: str) -> None:
        self._log(text)
        if self._startup is not None and (stage := self._startup.feed(text)):
            self._show(str(stage))

    async def _comes_up(self) -> bool:
        """True when it is healthy, False when it was stopped before. Raises: `StartError`."""
        care = self._order.care
        deadline = time.monotonic() + care.start_timeout_s
        while not await self._healthy():
            if await self._ended_within(care.poll_s):
                if self._ending:
                    return False
                raise self._diagnosis()
            if time.monotonic() > deadline:
                raise self._too_slow()
        return True

    async def _healthy(self) -> bool:
        """Whether it answers; ranks of another machine's server, which nobody asks: they are there.

        They log that their weights are loaded, and then only their end shows anything.
        """
        if self._order.spec.headless:
            return self._startup is None or self._startup.loaded
        return await healthy(self._host, self._port, self._order.care.timeout_s)

    async def _watch(self) -> str:
        care, guarded = self._order.care, self._guarded
        failures = 0
        while not await self._ended_within(care.interval_s):
            fine = self._ending or await self._healthy()
            failures = 0 if fine else failures + 1
            if failures >= care.failures and not guarded.ended.is_set():
                return f"did not answer {failures} questions for its health"
        return "stopped" if self._ending else _death(guarded.code)

    async def _ended_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._guarded.ended.wait()
        except TimeoutError:
            return False
        return True

    def _diagnosis(self) -> StartError:
        spec = replace(self._order.spec, port=self._port)
        found = diagnose(list(self._log.last), spec)
        parts = (found.hint, f"the whole log: {self._log.path}")
        hint = "; ".join(part for part in parts if part)
        return StartError(found.message, stage_reached=found.stage_reached, hint=hint)

    def _too_slow(self) -> StartError:
        stage = self._startup.stage if self._startup else None
        name = stage.name if stage else "starting"
        last = next(reversed(self._log.last), "it said nothing")
        return StartError(
            f"{self._order.spec.name} was not healthy after "
            f"{self._order.care.start_timeout_s:g} s, at the stage `{name}`: {last}",
            stage_reached=name,
            hint=f"--start-timeout gives it more time; the whole log: {self._log.path}",
        )


def _death(code: int | None) -> str:
    if code is None:
        return "lost its guard, which somebody killed"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended by itself with status {code}"
