"""The command of each replica from what is installed here; what weft refuses before starting any.

Starts nothing that serves.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from weft.core.errors import SpecError
from weft.serving.vllm.installed import installed_engine
from weft.serving.vllm.launch import Launch, launch
from weft.serving.vllm.ports import is_loopback
from weft.serving.vllm.processes import refuse_windows
from weft.serving.vllm.spec import ServeSpec

Maker = Callable[[int, int], Launch]
_DRAIN = "--shutdown-timeout"


def maker(spec: ServeSpec, drain_s: float) -> Maker:
    """What makes the command of a replica from a port and the replica's number.

    Requests in flight get `drain_s` where the engine can wait for them. May take 10 s at first.
    Raises: `EngineMissing`, `SpecError`, `ModelNotFound`.
    """
    engine = installed_engine(spec.device)
    if _DRAIN in engine.flags and _DRAIN not in spec.extra:
        spec = replace(spec, extra=(*spec.extra, _DRAIN, str(max(0, round(drain_s)))))
    launch(spec, engine, spec.port or 1)
    return lambda port, number: launch(spec, engine, port, number)


def checked(spec: ServeSpec) -> ServeSpec:
    """The spec with paths that hold in any folder, once it may be served on this machine.

    Raises: `ServeError` where weft cannot supervise, `SpecError` for a server open to anybody.
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
    """A folder that is here as its full path; any other name as it is."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.is_dir() else name
