"""One vLLM process, ready to be started: its arguments and what its environment gets in addition.

Starts nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.serving.vllm.arguments import arguments
from weft.serving.vllm.diffusion.command import ENVIRONMENT, canvas_model, refuse_canvases
from weft.serving.vllm.entrypoint import MODULE as COMMAND
from weft.serving.vllm.entrypoint import NEEDS_COMMAND
from weft.serving.vllm.environment import environment
from weft.serving.vllm.flags import MODULE
from weft.serving.vllm.installed import Engine
from weft.serving.vllm.machine import Machine, this_machine
from weft.serving.vllm.refusals import refuse, refuse_unknown_flags
from weft.serving.vllm.shape import UNKNOWN, shape_of
from weft.serving.vllm.spec import ServeSpec, flag_of
from weft.serving.vllm.weights import find_weights


@dataclass(frozen=True)
class Launch:
    """What to execute. `env` holds only what is added; it may carry a secret, `argv` never does."""

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
    machine: Machine | None = None,
) -> Launch:
    """How to start replica number `replica` (from 0) of `spec` on `port`.

    Raises: `SpecError` where the options cannot work together, with this model or with this engine;
    `ModelNotFound` where the weights are nowhere.
    """
    machine = machine or this_machine()
    weights = find_weights(spec)
    shape = shape_of(weights.folder) if weights.folder else UNKNOWN
    refuse(spec, engine, shape)
    found = canvas_model(weights.folder)
    if found is not None:
        refuse_canvases(spec, engine, found)
    argv = arguments(spec, engine, weights, port, machine, found)
    refuse_unknown_flags(argv, engine)
    added = environment(spec, engine, weights, machine, replica)
    module = COMMAND if NEEDS_COMMAND.intersection(map(flag_of, spec.extra)) else MODULE
    return Launch(
        (sys.executable, "-m", module, *argv),
        added if found is None else {**added, **ENVIRONMENT},
        port,
        spec.name,
    )
