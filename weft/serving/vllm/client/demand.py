"""Servings on demand: leases a running one that fits, else starts one that ends when unused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

from weft.core.errors import StartError, WeftError
from weft.core.values import Lossy
from weft.serving.vllm.launch.command import resolve_spec
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise import failure, registry
from weft.serving.vllm.supervise.detached import SupervisionTerms, start
from weft.serving.vllm.supervise.leases import LeaseFile
from weft.serving.vllm.supervise.processes import end_leftovers
from weft.serving.vllm.supervise.registry import ServingEntry

_DEFAULTS = {
    field.name: getattr(ServeSpec(model="any"), field.name)
    for field in fields(ServeSpec)
    if field.name != "model"
}
_ALWAYS = ("model", "quantization", "api_key_env")


def satisfies(entry: ServingEntry, wanted: ServeSpec) -> bool:
    """Whether `entry` serves what `wanted` asks for, and is not stopping.

    Options at their defaults in `wanted` may differ, except those that change answers silently (a
    lossy decoder, quantisation) and the key that clients need.
    """
    if entry.status == "stopping" or entry.spec.headless:
        return False
    running = entry.spec
    if isinstance(running.decode, Lossy) and running.decode != wanted.decode:
        return False
    names = {name for name, default in _DEFAULTS.items() if getattr(wanted, name) != default}
    return all(getattr(running, name) == getattr(wanted, name) for name in names.union(_ALWAYS))


_POLL_S = 0.1
_TRIES = 3


@dataclass(frozen=True, slots=True)
class ServerLease:
    """Keeps a serving alive until `release`, or until this process ends.

    id     id of the serving, as in `weft ps`
    name   name of the model in requests
    urls   the base URL of each replica, such as http://127.0.0.1:41873/v1
    spec   what is served, which may be more than was requested
    """

    id: str
    name: str
    urls: tuple[str, ...]
    spec: ServeSpec
    _file: LeaseFile = field(repr=False, compare=False)

    async def release(self) -> None:
        """End the lease. Harmless when repeated."""
        self._file.release()


async def demand(
    spec: ServeSpec, *, keep_alive_s: float = 0, show: Callable[[str], None] | None = None
) -> ServerLease:
    """A ready serving that satisfies `spec`; starts one if there is none.

    A new serving is shared by all processes that ask for the same meanwhile, and ends
    `keep_alive_s` after the last lease. `show` receives the stages of the start. Cancelling ends
    the lease.

    Raises: `StartError` when it does not become ready, `EngineMissing`, `SpecError`,
    `ModelNotFound`, `ServeError`.
    """
    wanted = resolve_spec(spec)
    await asyncio.to_thread(end_leftovers)
    for _ in range(_TRIES):
        entry, file, started = await _acquire(wanted, keep_alive_s)
        try:
            ready = await until_ready(entry.id, show)
            if ready is not None:
                return ServerLease(ready.id, ready.name, ready.urls, ready.spec, file)
            if started:
                raise StartError(f"{entry.id} was stopped while it started")
        except BaseException:
            file.release()
            raise
        file.release()
    raise StartError(f"servers of {spec.name} were stopped again and again while they started")


async def renewed(
    lease: ServerLease, wanted: ServeSpec, *, needed: bool, keep_alive_s: float = 0
) -> ServerLease | None:
    """`lease` with the current URLs of its serving; if that is gone, a lease of another one.

    Starts another serving only if `needed`; None if that is false and none runs. A lease of another
    serving replaces `lease`, which is released.

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


async def until_ready(
    serving: str, show: Callable[[str], None] | None = None
) -> ServingEntry | None:
    """Wait until a serving is ready; None when it was stopped before.

    Raises: the failure of its supervisor; `StartError` when that was killed.
    """
    stage = ""
    while True:
        entry = registry.entry_of(serving)
        if entry is None or not entry.supervisor.lives():
            if (error := _failure_of(serving, killed=entry is not None)) is not None:
                raise error
            return None
        if entry.status in ("ready", "degraded"):
            return entry
        if show is not None and entry.stage != stage:
            stage = entry.stage
            show(stage)
        await asyncio.sleep(_POLL_S)


async def _acquire(wanted: ServeSpec, keep_alive_s: float) -> tuple[ServingEntry, LeaseFile, bool]:
    """A serving, a lease on it, and whether this call started it."""
    async with registry.locked_meanwhile():
        running = next((e for e in registry.entries() if satisfies(e, wanted)), None)
        entry = running or start(wanted, SupervisionTerms(keep_alive_s=keep_alive_s))
        return entry, LeaseFile(entry.id), running is None


def _failure_of(serving: str, *, killed: bool) -> WeftError | None:
    """The failure of a serving that is gone; None when it was stopped."""
    return failure.read(serving) or (failure.abandoned(serving) if killed else None)
