"""What one rank must hold: weights, activations, and the KV cache in what is left.

Knows no time. The constants for activations follow the buffers that vLLM's own profile run fills.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.serving.plan.architecture import Architecture
from weft.serving.plan.hardware import Device
from weft.serving.plan.layout import Layout
from weft.serving.plan.limits import Limits
from weft.serving.plan.quantization import Quantization

_COMMUNICATION_BYTES = 512 << 20  # collective libraries' buffers, once there is more than one rank
_SAMPLER_BYTES = 16  # for each score of a sampled row: the score, its sorted copy, a 64-bit index


@dataclass(frozen=True, slots=True)
class RankMemory:
    """The memory of the fullest rank, in bytes; `kv_tokens` is what fits a replica's KV cache."""

    budget_bytes: int
    weight_bytes: int
    activation_bytes: int
    reserved_bytes: int
    kv_bytes_per_token: int
    kv_tokens: int

    @property
    def needed_bytes(self) -> int:
        """All but the KV cache."""
        return self.weight_bytes + self.activation_bytes + self.reserved_bytes


def weight_bytes(model: Architecture, layout: Layout, scheme: Quantization, stage: int = 0) -> int:
    """Bytes of weights on each rank of one pipeline stage.

    The first stage has the embedding and the last the head; tied, they are one on a single stage
    and a copy on both ends of several.
    """
    layers = layout.stages(model.layers)[stage]
    plain = model.vectors() * scheme.plain_bytes * len(layers)
    total = plain + sum(
        scheme.stored_bytes(matrix, layout.share(model, matrix))
        for number in layers
        for matrix in model.layer(number)
    )
    first, last = stage == 0, stage == layout.pp - 1
    if first:
        total += scheme.stored_bytes(model.embedding, layout.share(model, model.embedding))
    if last:
        total += model.hidden * scheme.plain_bytes
    if last and not (first and model.tied):
        total += scheme.stored_bytes(model.head, layout.share(model, model.head))
    return total


def kv_bytes_per_token(
    model: Architecture, layout: Layout, scheme: Quantization, stage: int = 0
) -> int:
    """Bytes that one token takes in the KV cache of each rank of one pipeline stage."""
    layers = len(layout.stages(model.layers)[stage])
    return layers * model.kv_elements(layout.tp) * scheme.kv_bytes


def kv_tokens(room_bytes: int, bytes_per_token: int, block_tokens: int) -> int:
    """Tokens whose keys and values fit `room_bytes`, in whole blocks."""
    return room_bytes // (bytes_per_token * block_tokens) * block_tokens


def activation_bytes(
    model: Architecture, layout: Layout, scheme: Quantization, limits: Limits
) -> int:
    """The peak of a forward pass as wide as `limits` allow, and of sampling after it."""
    tp, width = layout.tp, model.mlp_width // layout.tp
    projected = (model.heads + 2 * model.kv_heads) * model.head_dim // tp
    inner = max(3 * width, projected)  # gate, up and their product; or queries, keys and values
    if model.experts is not None:
        own = model.experts.width // (1 if layout.spread else tp)
        inner = max(inner, model.experts.per_token * (3 * own + model.hidden))
    passing = limits.max_batched_tokens * (2 * model.hidden + inner) * scheme.plain_bytes
    sampling = limits.max_seqs * model.vocab * _SAMPLER_BYTES
    return passing + sampling


def rank_memory(
    model: Architecture, layout: Layout, scheme: Quantization, device: Device, limits: Limits
) -> RankMemory:
    """The memory of the stage that leaves least room for tokens.

    `kv_tokens` is 0 where not even the weights fit.
    """
    budget = int(device.memory_bytes * limits.memory_share)
    activations = activation_bytes(model, layout, scheme, limits)
    shared = _COMMUNICATION_BYTES if layout.ranks > 1 else 0
    reserved = device.reserved_bytes + shared

    def of(stage: int) -> RankMemory:
        weights = weight_bytes(model, layout, scheme, stage)
        per_token = kv_bytes_per_token(model, layout, scheme, stage)
        room = max(0, budget - weights - activations - reserved)
        tokens = kv_tokens(room, per_token, limits.block_tokens)
        return RankMemory(budget, weights, activations, reserved, per_token, tokens)

    return min(
        (of(stage) for stage in range(layout.pp)),
        key=lambda rank: (rank.kv_tokens, -rank.weight_bytes),
    )
