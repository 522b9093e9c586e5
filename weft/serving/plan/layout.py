"""The cut of a model over devices, what forbids a cut, and the memory of each rank.

The constants for activations follow the buffers that vLLM's own profile run fills.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.serving.plan.architecture import Architecture, Matrix, Quantization
from weft.serving.plan.hardware import Device, EngineLimits


@dataclass(frozen=True, slots=True)
class RankLayout:
    """Ranks of tensor, pipeline and data parallelism.

    spread     whole experts are dealt out over all tp x dp ranks of a stage (expert parallel);
               otherwise every expert is sliced over the tp ranks like an MLP
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    spread: bool = False

    @property
    def ranks(self) -> int:
        """The number of devices."""
        return self.tp * self.pp * self.dp

    @property
    def expert_ranks(self) -> int:
        """The number of ranks that share one layer's experts."""
        return self.tp * self.dp if self.spread else self.tp

    def share(self, model: Architecture, matrix: Matrix) -> float:
        """The part of `matrix` on one rank: 1 where every rank has it whole."""
        match matrix.cut:
            case "whole":
                return 1.0
            case "kv_heads":
                return max(1.0, model.kv_heads / self.tp) / model.kv_heads
            case "experts":
                return 1 / self.expert_ranks
            case "heads" | "width":
                return 1 / self.tp

    def stages(self, layers: int) -> tuple[range, ...]:
        """The layers of each pipeline stage, divided as vLLM does (`get_pp_indices`).

        Remaining layers go one each to the stages before the last, from the back.
        """
        sizes = [layers // self.pp] * self.pp
        for back in range(2, layers % self.pp + 2):
            sizes[-back] += 1
        ends = [sum(sizes[: n + 1]) for n in range(self.pp)]
        return tuple(range(end - size, end) for end, size in zip(ends, sizes, strict=True))

    def objection(self, model: Architecture, scheme: Quantization) -> str | None:
        """Why vLLM would refuse this cut of `model`; None if it would not."""
        if model.heads % self.tp:
            return f"{model.heads} attention heads do not divide by tp {self.tp}"
        if model.latent is None and max(model.kv_heads, self.tp) % min(model.kv_heads, self.tp):
            return f"{model.kv_heads} key/value heads do not fit tp {self.tp}"
        if model.layers < self.pp:
            return f"{model.layers} layers are fewer than pp {self.pp}"
        if self.spread and model.experts is None:
            return "there are no experts to spread"
        if self.spread and model.experts and model.experts.number % self.expert_ranks:
            return f"{model.experts.number} experts do not divide by {self.expert_ranks} ranks"
        return self._width_objection(model, scheme)

    def _width_objection(self, model: Architecture, scheme: Quantization) -> str | None:
        """Refuses slices of an MLP that are not whole, or cut the groups or blocks of a scale."""
        widths = {"MLP": model.mlp_width} if len(model.dense_layers) or not model.experts else {}
        if model.experts and not self.spread:
            widths["expert"] = model.experts.width
        unit = scheme.group or (model.weight_block if scheme.name == model.checkpoint else None)
        for what, width in widths.items():
            if width % self.tp:
                return f"the {what} width {width} does not divide by tp {self.tp}"
            if unit and width // self.tp % unit:
                return (
                    f"{width // self.tp} of {what} width {width} at tp {self.tp} is not a"
                    f" multiple of the {unit} weights that share a {scheme.name} scale"
                )
        return None

    def __str__(self) -> str:
        """`tp 4 x pp 1 x dp 2`, with `, experts spread` where they are."""
        cut = f"tp {self.tp} x pp {self.pp} x dp {self.dp}"
        return cut + (", experts spread" if self.spread else "")


_COMMUNICATION_BYTES = 512 << 20  # collective libraries' buffers, once there is more than one rank
_SAMPLER_BYTES = 16  # for each score of a sampled row: the score, its sorted copy, a 64-bit index


@dataclass(frozen=True, slots=True)
class RankMemory:
    """The memory of the fullest rank, in bytes; `kv_tokens` is the capacity of its KV cache."""

    budget_bytes: int
    weight_bytes: int
    activation_bytes: int
    reserved_bytes: int
    kv_bytes_per_token: int
    kv_tokens: int

    @property
    def needed_bytes(self) -> int:
        """Everything except the KV cache."""
        return self.weight_bytes + self.activation_bytes + self.reserved_bytes


def weight_bytes(
    model: Architecture, layout: RankLayout, scheme: Quantization, stage: int = 0
) -> int:
    """Bytes of weights on each rank of one pipeline stage.

    The first stage has the embedding and the last the head; tied, they are one matrix on a single
    stage, and a copy on both ends of several.
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
    model: Architecture, layout: RankLayout, scheme: Quantization, stage: int = 0
) -> int:
    """Bytes of one token in the KV cache of each rank of one pipeline stage."""
    layers = len(layout.stages(model.layers)[stage])
    return layers * model.kv_elements(layout.tp) * scheme.kv_bytes


def kv_tokens(room_bytes: int, bytes_per_token: int, block_tokens: int) -> int:
    """The tokens whose keys and values fit `room_bytes`, in whole blocks."""
    return room_bytes // (bytes_per_token * block_tokens) * block_tokens


def activation_bytes(
    model: Architecture, layout: RankLayout, scheme: Quantization, limits: EngineLimits
) -> int:
    """The peak of the widest forward pass within `limits`, and of sampling after it."""
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
    model: Architecture,
    layout: RankLayout,
    scheme: Quantization,
    device: Device,
    limits: EngineLimits,
) -> RankMemory:
    """The memory of the stage with the least room for tokens.

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
