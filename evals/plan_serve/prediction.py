"""What the planner says of the configurations. Measures nothing."""

from __future__ import annotations

from evals.plan_serve.calibration import Calibration
from evals.plan_serve.configurations import BLOCK_TOKENS, KV_BYTES, Configuration
from weft.serving.plan.architecture import QUANTIZATIONS, Architecture
from weft.serving.plan.latency import StepTime
from weft.serving.plan.layout import kv_bytes_per_token, kv_tokens
from weft.serving.plan.plans import SimulationResult
from weft.serving.plan.simulation import SimulatedReplica, serve
from weft.serving.plan.traffic import Traffic


def predicted_kv_tokens(model: Architecture, configuration: Configuration) -> int:
    """Tokens of one replica's KV cache, of which every rank holds the same memory."""
    layout, scheme = configuration.layout, QUANTIZATIONS[configuration.number]
    return min(
        kv_tokens(KV_BYTES, kv_bytes_per_token(model, layout, scheme, stage), BLOCK_TOKENS)
        for stage in range(layout.pp)
    )


def predict(
    model: Architecture, configuration: Configuration, calibration: Calibration, traffic: Traffic
) -> SimulationResult:
    """The simulated course of the traffic."""
    layout, scheme = configuration.layout, QUANTIZATIONS[configuration.number]
    durations = StepTime(model, layout, scheme, calibration.device(configuration))
    replicas = [
        SimulatedReplica(
            durations,
            kv_tokens=predicted_kv_tokens(model, configuration),
            block_tokens=BLOCK_TOKENS,
            slots=configuration.max_seqs,
            budget=configuration.max_batched_tokens * layout.pp,
        )
        for _ in range(layout.dp)
    ]
    serve(traffic, replicas)
    return SimulationResult.of(replicas)
