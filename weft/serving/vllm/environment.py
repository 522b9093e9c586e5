"""What a vLLM process gets in its environment. The only way a secret travels to it."""

from __future__ import annotations

import os

from weft.core.errors import SpecError
from weft.serving.vllm.constraints import constraint_environment
from weft.serving.vllm.installed import Engine
from weft.serving.vllm.machine import Machine
from weft.serving.vllm.spec import ServeSpec
from weft.serving.vllm.threads import as_list, cores_of_ranks, threads_of_rank
from weft.serving.vllm.weights import Weights

_BIND = "VLLM_CPU_OMP_THREADS_BIND"


def environment(
    spec: ServeSpec, engine: Engine, weights: Weights, machine: Machine, replica: int
) -> dict[str, str]:
    """The variables to add for replica number `replica`. Raises: `SpecError` without the key."""
    added = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if weights.here:
        added["HF_HUB_OFFLINE"] = "1"
    if engine.platform == "cpu":
        added |= _cpu(spec, machine, replica)
    if spec.api_key_env is not None:
        added["VLLM_API_KEY"] = _key(spec.api_key_env)
    return added | constraint_environment(spec, engine)


def _cpu(spec: ServeSpec, machine: Machine, replica: int) -> dict[str, str]:
    added = {"VLLM_CPU_CI_ENV": "0"}  # where it is 1, a warm-up that pipelines need is left out
    if os.environ.get(_BIND):
        return added  # somebody who knows this machine has said it
    if machine.owns_cores:
        ranks = cores_of_ranks(machine, spec.local_ranks, spec.replicas, replica)
        return added | {_BIND: "|".join(as_list(cores) for cores in ranks)}
    # Under a quota the cores belong to others too: threads are counted, not bound.
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
