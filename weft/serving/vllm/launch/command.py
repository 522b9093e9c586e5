"""Command and environment of each replica; refuses impossible ones before anything starts.

Starts no server. Secrets reach a server through its environment only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft.core.errors import SpecError
from weft.core.hosts import is_loopback
from weft.serving.vllm.launch.arguments import arguments, constraint_environment
from weft.serving.vllm.launch.diffusion import ENVIRONMENT, canvas_model, refuse_canvases
from weft.serving.vllm.launch.engine import MODULE, Engine, installed_engine
from weft.serving.vllm.launch.entrypoint import MODULE as COMMAND
from weft.serving.vllm.launch.entrypoint import NEEDS_COMMAND
from weft.serving.vllm.launch.machine import (
    HostResources,
    as_list,
    cores_of_ranks,
    refuse_windows,
    this_machine,
    threads_of_rank,
)
from weft.serving.vllm.launch.refusals import refuse, refuse_unknown_flags
from weft.serving.vllm.launch.spec import ServeSpec, flag_of
from weft.serving.vllm.launch.weights import UNKNOWN, ModelWeights, find_weights, shape_of

_BIND = "VLLM_CPU_OMP_THREADS_BIND"


def environment(
    spec: ServeSpec, engine: Engine, weights: ModelWeights, machine: HostResources, replica: int
) -> dict[str, str]:
    """Variables to add for replica number `replica`. Raises: `SpecError` if the key is missing."""
    added = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if weights.here:
        added["HF_HUB_OFFLINE"] = "1"
    if engine.platform == "cpu":
        added |= _cpu(spec, machine, replica)
    if spec.api_key_env is not None:
        added["VLLM_API_KEY"] = _key(spec.api_key_env)
    return added | constraint_environment(spec, engine)


def _cpu(spec: ServeSpec, machine: HostResources, replica: int) -> dict[str, str]:
    added = {"VLLM_CPU_CI_ENV": "0"}  # 1 would skip a warm-up that pipelines need
    if os.environ.get(_BIND):
        return added  # set by the user
    if machine.owns_cores:
        ranks = cores_of_ranks(machine, spec.local_ranks, spec.replicas, replica)
        return added | {_BIND: "|".join(as_list(cores) for cores in ranks)}
    # Under a quota the cores are shared with others: threads are counted, not bound.
    threads = threads_of_rank(machine.quota_cores // spec.replicas, spec.local_ranks)
    return added | {_BIND: "nobind", "OMP_NUM_THREADS": str(threads)}


def _key(name: str) -> str:
    key = os.environ.get(name, "")
    if not key:
        raise SpecError(
            f"the environment variable {name}, which should hold the key of clients, is not set",
            hint=f"export {name}=... before starting",
        )
    return key


@dataclass(frozen=True)
class Launch:
    """A command. `env` has only added variables, which may contain a secret; `argv` never does."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    port: int
    name: str


def launch(
    spec: ServeSpec,
    engine: Engine,
    port: int,
    replica: int = 0,
    *,
    machine: HostResources | None = None,
) -> Launch:
    """The command that starts replica number `replica` (from 0) of `spec` on `port`.

    Raises: `SpecError` where the options cannot work together, with this model or with this engine;
    `ModelNotFound` where the weights cannot be found.
    """
    machine = machine or this_machine()
    weights = find_weights(spec)
    shape = shape_of(weights.folder) if weights.folder else UNKNOWN
    refuse(spec, engine, shape)
    canvas = canvas_model(weights.folder)
    if canvas is not None:
        refuse_canvases(spec, engine, canvas)
    argv = arguments(spec, engine, weights, port, machine, canvas)
    refuse_unknown_flags(argv, engine)
    added = environment(spec, engine, weights, machine, replica)
    module = COMMAND if NEEDS_COMMAND.intersection(map(flag_of, spec.extra)) else MODULE
    return Launch(
        (sys.executable, "-m", module, *argv),
        added if canvas is None else {**added, **ENVIRONMENT},
        port,
        spec.name,
    )


Maker = Callable[[int, int], Launch]
_DRAIN = "--shutdown-timeout"


def maker(spec: ServeSpec, drain_s: float) -> Maker:
    """A function from a port and a replica's number to its command.

    Requests in flight get `drain_s` to finish, if the engine supports that. The first call may take
    10 s. Raises: `EngineMissing`, `SpecError`, `ModelNotFound`.
    """
    engine = installed_engine(spec.device)
    if _DRAIN in engine.flags and _DRAIN not in spec.extra:
        spec = replace(spec, extra=(*spec.extra, _DRAIN, str(max(0, round(drain_s)))))
    launch(spec, engine, spec.port or 1)
    return lambda port, number: launch(spec, engine, port, number)


def resolve_spec(spec: ServeSpec) -> ServeSpec:
    """The spec with absolute paths, checked for this machine.

    Raises: `ServeError` where weft cannot supervise; `SpecError` for a public server without a key.
    """
    refuse_windows()
    if not is_loopback(spec.host) and spec.api_key_env is None:
        raise SpecError(
            f"on {spec.host} others can reach the server, and it would ask for no key",
            hint="--api-key-env NAME takes the key from that variable; or stay on 127.0.0.1",
        )
    if spec.api_key_env is not None and not os.environ.get(spec.api_key_env):
        raise SpecError(
            f"the variable {spec.api_key_env} holds no key",
            hint=f"export {spec.api_key_env}=..., or leave --api-key-env out",
        )
    adapters = {name: _absolute(path) for name, path in spec.adapters.items()}
    return replace(spec, model=_absolute(spec.model), adapters=adapters)


def _absolute(name: str) -> str:
    """The absolute path of an existing folder; any other name unchanged."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.is_dir() else name
