"""One process of a server from its start to its end, with health checks. Leaves no process behind.

Has no access to the registry; of restarts it only has the policy.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from weft.core.errors import StartError
from weft.core.hosts import reachable
from weft.serving.vllm.launch.command import Launch
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise.guarded_process import GuardedProcess
from weft.serving.vllm.supervise.log import LogFile, StartupLog, diagnose
from weft.serving.vllm.supervise.processes import Mark


async def healthy(host: str, port: int, timeout_s: float) -> bool:
    """Whether `GET /health` returns 200 in time."""
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host.strip("[]"), port)
            try:
                name = host if ":" not in host else f"[{host.strip('[]')}]"
                head = f"GET /health HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n"
                writer.write(head.encode())
                status = (await reader.readline()).split()
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, ValueError):
        return False
    return len(status) > 1 and status[1] == b"200"


@dataclass(slots=True)
class RestartPolicy:
    """Exponential back-off with a bound: at most `most` starts within any `window_s`.

    Call `after` at each crash with the time in seconds, on a monotonic clock.
    """

    first_s: float = 1.0
    longest_s: float = 60.0
    most: int = 5
    window_s: float = 600.0
    _crashes: deque[float] = field(default_factory=deque)

    def after(self, now_s: float) -> float | None:
        """Seconds to wait before the next start; None: give up."""
        while self._crashes and now_s - self._crashes[0] > self.window_s:
            self._crashes.popleft()
        if len(self._crashes) >= self.most:
            return None
        wait_s = min(self.longest_s, self.first_s * 2.0 ** len(self._crashes))
        self._crashes.append(now_s)
        return wait_s


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """Health checks of a server. All in seconds, except `failures`: failed checks in a row.

    `teardown_s` is the time an engine has to end after its requests; `restarts` makes the policy of
    one replica.
    """

    start_timeout_s: float = 1800.0
    poll_s: float = 0.25
    interval_s: float = 5.0
    timeout_s: float = 10.0
    failures: int = 3
    teardown_s: float = 10.0
    restarts: Callable[[], RestartPolicy] = RestartPolicy


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """What defines one replica. `make` gives the command for a port."""

    spec: ServeSpec
    number: int
    mark: Mark
    make: Callable[[int], Launch]
    health: HealthPolicy = field(default_factory=HealthPolicy)


class ReplicaProcess:
    """One process of a server on `port`. `ready` receives its process id once it is healthy."""

    def __init__(
        self,
        spec: ReplicaSpec,
        port: int,
        log: LogFile,
        show: Callable[[str], None],
        ready: Callable[[int | None], None],
    ) -> None:
        self._spec = spec
        self._port = port
        self._log = log
        self._show = show
        self._ready = ready
        self._host = reachable(spec.spec.host)
        self._startup: StartupLog | None = StartupLog()
        self._ending = False
        self._guarded = GuardedProcess(spec.mark, spec.number, self._on_line)

    async def run(self) -> str:
        """Returns why it ended, once no process is left. Raises: `StartError`, `SpecError`."""
        self._log.last.clear()
        launch = self._spec.make(self._port)
        guarded = self._guarded
        try:
            await guarded.start(launch.argv, launch.env)
            if self._ending:  # stopped before there was a process
                guarded.kill()
            if not await self._starts():
                return "stopped"
            self._startup = None
            self._ready(guarded.engine)
            return await self._watch()
        finally:
            await guarded.close()

    def stop(self, grace_s: float) -> None:
        """End the process; requests in flight have `grace_s` to finish, none while it starts."""
        self._ending = True
        self._guarded.stop(grace_s if self._startup is None else 0.0)

    def kill(self) -> None:
        """End the process now."""
        self._ending = True
        self._guarded.kill()

    def _on_line(self, text: str) -> None:
        self._log(text)
        if self._startup is not None and (stage := self._startup.feed(text)):
            self._show(str(stage))

    async def _starts(self) -> bool:
        """True when healthy, False when stopped before. Raises: `StartError`."""
        health = self._spec.health
        deadline = time.monotonic() + health.start_timeout_s
        while not await self._healthy():
            if await self._ended_within(health.poll_s):
                if self._ending:
                    return False
                raise self._diagnosis()
            if time.monotonic() > deadline:
                raise self._too_slow()
        return True

    async def _healthy(self) -> bool:
        """Whether it answers. Ranks of another machine's server count as healthy once loaded.

        They have no endpoint, and log only that their weights are loaded.
        """
        if self._spec.spec.headless:
            return self._startup is None or self._startup.loaded
        return await healthy(self._host, self._port, self._spec.health.timeout_s)

    async def _watch(self) -> str:
        health, guarded = self._spec.health, self._guarded
        failures = 0
        while not await self._ended_within(health.interval_s):
            fine = self._ending or await self._healthy()
            failures = 0 if fine else failures + 1
            if failures >= health.failures and not guarded.ended.is_set():
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
        spec = replace(self._spec.spec, port=self._port)
        found = diagnose(list(self._log.last), spec)
        parts = (found.hint, f"the whole log: {self._log.path}")
        hint = "; ".join(part for part in parts if part)
        return StartError(found.message, stage_reached=found.stage_reached, hint=hint)

    def _too_slow(self) -> StartError:
        stage = self._startup.stage if self._startup else None
        name = stage.name if stage else "starting"
        last = next(reversed(self._log.last), "it said nothing")
        return StartError(
            f"{self._spec.spec.name} was not healthy after "
            f"{self._spec.health.start_timeout_s:g} s, at the stage `{name}`: {last}",
            stage_reached=name,
            hint=f"--start-timeout gives it more time; the whole log: {self._log.path}",
        )


def _death(code: int | None) -> str:
    if code is None:
        return "lost its guard, which somebody killed"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended by itself with status {code}"
