"""A serving on demand: a running one that fits, else a new one that ends when nobody needs it.

Knows the registry and leases; how a serving is kept is the supervisor's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from weft.core.errors import StartError, WeftError
from weft.serving.vllm import failure, registry
from weft.serving.vllm.command import checked
from weft.serving.vllm.detached import Terms, start
from weft.serving.vllm.entry import Entry
from weft.serving.vllm.lease import Hold
from weft.serving.vllm.matching import satisfies
from weft.serving.vllm.processes import end_leftovers
from weft.serving.vllm.spec import ServeSpec

_POLL_S = 0.1
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Lease:
    """A serving that stays at least until `release`, or until this process ends in any way.

    id     the serving's, as `weft ps` shows it
    name   what to call the model in requests
    urls   the base URL of each replica, such as http://127.0.0.1:41873/v1
    spec   what is served, which may be more than was asked for
    """

    id: str
    name: str
    urls: tuple[str, ...]
    spec: ServeSpec
    _hold: Hold = field(repr=False, compare=False)

    async def release(self) -> None:
        """Let it go. Harmless when repeated."""
        self._hold.release()


async def demand(
    spec: ServeSpec, *, keep_alive_s: float = 0, show: Callable[[str], None] | None = None
) -> Lease:
    """A serving that satisfies `spec` and is ready; started when there is none.

    A new one is shared by all who ask for the same meanwhile, and ends `keep_alive_s` after the
    last lease. `show` gets the stages of the start. When cancelled, the interest is released.

    Raises: `StartError` when it does not come up, `EngineMissing`, `SpecError`, `ModelNotFound`,
    `ServeError`.
    """
    wanted = checked(spec)
    await asyncio.to_thread(end_leftovers)
    for _ in range(_TRIES):
        entry, hold, ours = await _take(wanted, keep_alive_s)
        try:
            ready = await until_ready(entry.id, show)
            if ready is not None:
                return Lease(ready.id, ready.name, ready.urls, ready.spec, hold)
            if ours:
                raise StartError(f"{entry.id} was stopped while it started")
        except BaseException:
            hold.release()
            raise
        hold.release()
    raise StartError(f"servers of {spec.name} were stopped again and again while they started")


async def renewed(
    lease: Lease, wanted: ServeSpec, *, needed: bool, keep_alive_s: float = 0
) -> Lease | None:
    """`lease` as its serving stands now; where that is gone, a lease of another one.

    Another is started only where it is `needed`; None when it is not, and none runs. A lease that
    is not `lease` replaces it, and `lease` is released.

    Raises: as `demand`.
    """
    entry = registry.entry_of(lease.id)
    if entry is not None and entry.supervisor.lives() and entry.status != "stopping":
        return replace(lease, urls=entry.urls or lease.urls)
    if not needed:
        async with registry.locked_meanwhile():
            if not any(satisfies(other, wanted) for other in registry.entries()):
                return None
    other = await demand(wanted, keep_alive_s=keep_alive_s)
    await lease.release()
    return other


async def until_ready(serving: str, show: Callable[[str], None] | None = None) -> Entry | None:
    """Wait until a serving is ready; None when it was stopped before.

    Raises: what its supervisor failed with; `StartError` when that was killed.
    """
    stage = ""
    while True:
        entry = registry.entry_of(serving)
        if entry is None or not entry.supervisor.lives():
            if (error := _why(serving, killed=entry is not None)) is not None:
                raise error
            return None
        if entry.status in ("ready", "degraded"):
            return entry
        if show is not None and entry.stage != stage:
            stage = entry.stage
            show(stage)
        await asyncio.sleep(_POLL_S)


async def _take(wanted: ServeSpec, keep_alive_s: float) -> tuple[Entry, Hold, bool]:
    """A serving with our lease on it, and whether it was started for us."""
    async with registry.locked_meanwhile():
        running = next((e for e in registry.entries() if satisfies(e, wanted)), None)
        entry = running or start(wanted, Terms(keep_alive_s=keep_alive_s))
        return entry, Hold(entry.id), running is None


def _why(serving: str, *, killed: bool) -> WeftError | None:
    """The reason of a serving that is gone; None when it was told to stop."""
    return failure.found(serving) or (failure.abandoned(serving) if killed else None)
