"""The actions of `weft serve`, `weft ps` and `weft stop`. Prints nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from weft.core.errors import ServeError, StartError
from weft.serving.vllm.client.demand import until_ready
from weft.serving.vllm.launch.command import Launch, maker, resolve_spec
from weft.serving.vllm.launch.engine import installed_engine
from weft.serving.vllm.launch.machine import refuse_windows
from weft.serving.vllm.launch.ray import ray_commands
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise import registry
from weft.serving.vllm.supervise.detached import SupervisionTerms, entry_for, start
from weft.serving.vllm.supervise.processes import Identity, end_leftovers, end_marked, gone
from weft.serving.vllm.supervise.registry import ServingEntry
from weft.serving.vllm.supervise.supervisor import ServerSupervisor

_POLL_S = 0.05
_BEYOND_DRAIN_S = 30.0
_NOW_S = 10.0
_TIDY_S = 10.0


def servings() -> list[ServingEntry]:
    """All servings, the oldest first. Also ends leftovers of killed ones.

    Raises: `ServeError`.
    """
    refuse_windows()
    end_leftovers()
    with registry.locked():
        return registry.entries()


def chosen(words: Sequence[str]) -> list[ServingEntry]:
    """The servings with these ids or names, each once. Raises: `ServeError` for an unknown one."""
    running = servings()
    found: dict[str, ServingEntry] = {}
    for word in words:
        same = [entry for entry in running if word == entry.id]
        same = same or [entry for entry in running if word == entry.name]
        if not same:
            ids = ", ".join(entry.id for entry in running)
            hint = f"there are: {ids}" if running else "none is running"
            raise ServeError(f"there is no serving {word!r}", hint=hint)
        if len(same) > 1:
            ids = ", ".join(entry.id for entry in same)
            raise ServeError(f"{len(same)} servings are called {word}", hint=f"name one of: {ids}")
        found[same[0].id] = same[0]
    return list(found.values())


def stop(entry: ServingEntry, *, now: bool = False) -> None:
    """End a serving. Requests in flight have its drain time to finish, or none with `now`.

    Returns when none of its processes is left. Kills a supervisor that does not end in time.
    Raises: `ServeError` when processes survive even that.
    """
    supervisor = entry.supervisor
    patience_s = _NOW_S if now else entry.drain_s + _BEYOND_DRAIN_S
    _signal(entry, signal.SIGQUIT if now else signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while supervisor.lives() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if supervisor.lives():
        _signal(entry, signal.SIGKILL)
    if not gone(entry.id, _TIDY_S):
        end_marked(entry.id)
        if not gone(entry.id, _TIDY_S):
            raise ServeError(f"processes of {entry.id} cannot be killed", hint="see `ps`")
    with registry.locked():
        registry.remove(entry.id)


def _signal(entry: ServingEntry, number: signal.Signals) -> None:
    if entry.supervisor.lives():
        with suppress(ProcessLookupError):
            os.kill(entry.supervisor.pid, number)


Show = Callable[[str], None]


def serve(
    spec: ServeSpec, terms: SupervisionTerms, show: Show, ready: Callable[[ServingEntry], None]
) -> bool:
    """Serve until a signal or `weft stop`; true if it ever was ready. Main thread only.

    `show` receives lines for the user, `ready` the entry once every replica is up.
    Raises: `StartError`, `EngineMissing`, `SpecError`, `ModelNotFound`, `ServeError`.
    """
    resolved = resolve_spec(spec)
    make = maker(resolved, terms.drain_s)
    entry = entry_for(registry.new_id(resolved.name), resolved, terms, Identity.own())
    return asyncio.run(ServerSupervisor(entry, make, show=show, ready=ready).run())


def serve_detached(spec: ServeSpec, terms: SupervisionTerms, show: Show) -> ServingEntry:
    """Start a detached supervisor and wait until it is ready. An interrupt ends it again.

    Raises: as `serve`.
    """
    resolved = resolve_spec(spec)
    end_leftovers()
    with registry.locked():
        entry = start(resolved, terms)
    try:
        ready = asyncio.run(until_ready(entry.id, show))
    except KeyboardInterrupt:
        stop(entry, now=True)
        raise
    if ready is None:
        raise StartError(f"{entry.id} was stopped while it started")
    return ready


def across_machines(spec: ServeSpec) -> str:
    """The commands for each of `spec.nodes` machines with GPUs. This one needs no GPU.

    Raises: `EngineMissing`, `SpecError`, `ModelNotFound`.
    """
    engine = installed_engine()
    return ray_commands(resolve_spec(spec), replace(engine, distribution="vllm", platform="cuda"))


def launches(spec: ServeSpec, terms: SupervisionTerms) -> list[Launch]:
    """The commands that `serve` would run, one per replica; port 0 stands for a free one.

    Raises: as `serve`, but starts nothing.
    """
    resolved = resolve_spec(spec)
    make = maker(resolved, terms.drain_s)
    first = resolved.port
    return [make(first + n if first else 0, n) for n in range(resolved.replicas)]
