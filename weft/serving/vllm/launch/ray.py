"""Commands that run one server on several machines, with vLLM's Ray executor. Runs none of them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from weft.core.errors import SpecError
from weft.serving.vllm.launch.arguments import arguments
from weft.serving.vllm.launch.engine import MODULE, Engine
from weft.serving.vllm.launch.machine import HostResources
from weft.serving.vllm.launch.refusals import refuse, refuse_unknown_flags
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.launch.weights import UNKNOWN, find_weights, shape_of

_RAY_PORT = 6379
_SERVER_PORT = 8000
_ELSEWHERE = HostResources(cores=(0,), quota_cores=1, memory_bytes=0)  # not used for GPUs


def ray_commands(spec: ServeSpec, engine: Engine) -> str:
    """The commands for each machine to serve `spec` on `spec.nodes` machines, with comments.

    Ray is told to ask for a token, as Ray 2.60 can. Secrets appear as the names of their
    environment variables.
    Raises: `SpecError` as `launch` does, and for a single node; `ModelNotFound`.
    """
    if spec.nodes == 1:
        raise SpecError("one machine needs no Ray", hint="set `nodes`, or use `weft serve`")
    weights = find_weights(spec)
    refuse(spec, engine, shape_of(weights.folder) if weights.folder else UNKNOWN)
    argv = arguments(spec, engine, weights, spec.port or _SERVER_PORT, _ELSEWHERE)
    refuse_unknown_flags(argv, engine)
    environment = {"RAY_AUTH_MODE": "token", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if weights.here:
        environment["HF_HUB_OFFLINE"] = "1"
    here = _variables({"VLLM_HOST_IP": "ADDRESS_OF_THIS_MACHINE", **environment})
    serve = _variables({"VLLM_HOST_IP": "ADDRESS_OF_THE_HEAD", **environment})
    if spec.api_key_env is not None:
        serve += f' VLLM_API_KEY="${spec.api_key_env}"'
    others = "the other machine" if spec.nodes == 2 else f"each of the other {spec.nodes - 1}"
    lines = [
        "# Once: a token, and the same file ~/.ray/auth_token on every machine:",
        "ray get-auth-token --generate",
        "# On the machine that is to be the head:",
        f"{here} ray start --head --port={_RAY_PORT}",
        f"# On {others}:",
        f"{here} ray start --address=ADDRESS_OF_THE_HEAD:{_RAY_PORT}",
        f"# On the head, as soon as `ray status` shows {spec.ranks} GPUs:",
        f"{serve} python -m {MODULE} {shlex.join(argv)}",
        "# Afterwards, on every machine:",
        "ray stop",
    ]
    return "\n".join([*_warnings(spec), *lines]) + "\n"


def _variables(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _warnings(spec: ServeSpec) -> list[str]:
    warnings = []
    if spec.tp * spec.nodes > spec.ranks:
        warnings.append(
            f"# tp {spec.tp} crosses machines: every layer waits for the network between them. "
            "With pp at the number of machines only one hand-over per token does."
        )
    if spec.host in ("127.0.0.1", "localhost", "::1"):
        warnings.append(
            "# The server answers on the head only; set `host` to reach it from outside."
        )
    return warnings
