"""What `weft serve` does: in this process until told to stop, detached, or only said.

Prints nothing; whoever calls shows what it is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from weft.core.errors import StartError
from weft.serving.vllm import registry
from weft.serving.vllm.command import checked, maker
from weft.serving.vllm.demand import until_ready
from weft.serving.vllm.detached import Terms, entry_for, start
from weft.serving.vllm.entry import Entry
from weft.serving.vllm.installed import installed_engine
from weft.serving.vllm.launch import Launch
from weft.serving.vllm.processes import Identity, end_leftovers
from weft.serving.vllm.ray import ray_commands
from weft.serving.vllm.spec import ServeSpec
from weft.serving.vllm.stopping import stop
from weft.serving.vllm.supervisor import Supervisor

Show = Callable[[str], None]


def serve(spec: ServeSpec, terms: Terms, show: Show, ready: Callable[[Entry], None]) -> bool:
    """Serve until a signal or `weft stop` ends it. Whether it ever was ready. Main thread only.

    `show` gets lines for people, `ready` the entry once every replica is up.
    Raises: `StartError`, `EngineMissing`, `SpecError`, `ModelNotFound`, `ServeError`.
    """
    wanted = checked(spec)
    make = maker(wanted, terms.drain_s)
    entry = entry_for(registry.new_id(wanted.name), wanted, terms, Identity.own())
    return asyncio.run(Supervisor(entry, make, show=show, ready=ready).run())


def serve_detached(spec: ServeSpec, terms: Terms, show: Show) -> Entry:
    """Start a supervisor of its own and wait until it is ready. Interrupted, it ends again.

    Raises: as `serve`.
    """
    wanted = checked(spec)
    end_leftovers()
    with registry.locked():
        entry = start(wanted, terms)
    try:
        ready = asyncio.run(until_ready(entry.id, show))
    except KeyboardInterrupt:
        stop(entry, now=True)
        raise
    if ready is None:
        raise StartError(f"{entry.id} was stopped while it started")
    return ready


def across_machines(spec: ServeSpec) -> str:
    """What to type on which machine, for `spec.nodes` of them with GPUs; none has to be here.

    Raises: `EngineMissing`, `SpecError`, `ModelNotFound`.
    """
    engine = installed_engine()
    return ray_commands(checked(spec), replace(engine, distribution="vllm", platform="cuda"))


def launches(spec: ServeSpec, terms: Terms) -> list[Launch]:
    """The commands that `serve` would run, one for each replica; port 0 stands for a free one.

    Raises: as `serve`, but starts nothing.
    """
    wanted = checked(spec)
    make = maker(wanted, terms.drain_s)
    first = wanted.port
    return [make(first + n if first else 0, n) for n in range(wanted.replicas)]
