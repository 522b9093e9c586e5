"""The duration of one forward pass: a roofline for each kind of work, and communication.

The roofline model (Williams, Waterman and Patterson, 2009): work takes the longer of its arithmetic
and its memory traffic. Ring formulas of communication as in Thakur, Rabenseifner and Gropp,
"Optimization of Collective Communication Operations in MPICH" (2005).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from weft.serving.plan.architecture import Architecture, Compute, Matrix, Quantization, Role
from weft.serving.plan.hardware import Device
from weft.serving.plan.layout import RankLayout


@dataclass(frozen=True, slots=True)
class DeviceLink:
    """A connection of each rank to its peers: bytes per second in one direction, and one delay."""

    bytes_s: float
    hop_s: float

    def all_reduce_s(self, size_bytes: float, ranks: int) -> float:
        """All-reduce, in 2 (n - 1) messages of 1/n of the size."""
        if ranks == 1:
            return 0.0
        messages = 2 * (ranks - 1)
        return messages * (self.hop_s + size_bytes / ranks / self.bytes_s)

    def gather_s(self, size_bytes: float, ranks: int) -> float:
        """All-gather of `size_bytes` in total."""
        if ranks == 1:
            return 0.0
        return (ranks - 1) * (self.hop_s + size_bytes / ranks / self.bytes_s)

    def exchange_s(self, size_bytes: float, ranks: int, destinations: int) -> float:
        """All-to-all: each rank sends its tokens, `size_bytes`, to `destinations` others."""
        if ranks == 1:
            return 0.0
        copies = min(destinations, ranks - 1)
        return (ranks - 1) * self.hop_s + copies * size_bytes / self.bytes_s

    def send_s(self, size_bytes: float) -> float:
        """One message between two ranks."""
        return self.hop_s + size_bytes / self.bytes_s


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """The input of one forward pass.

    prefill_tokens     prompt tokens, of all prompts
    prefill_pairs      for each of them the tokens it attends to, summed
    decodes            sequences that get one more token
    decode_context     tokens those attend to, summed
    sampled            sequences that get a token: the decodes, and complete prompts
    """

    prefill_tokens: float = 0
    prefill_pairs: float = 0
    decodes: float = 0
    decode_context: float = 0
    sampled: float = 0

    def part(self, number: int) -> ForwardBatch:
        """One of `number` equal parts."""
        return ForwardBatch(
            self.prefill_tokens / number,
            self.prefill_pairs / number,
            self.decodes / number,
            self.decode_context / number,
            self.sampled / number,
        )


@dataclass(frozen=True, slots=True)
class _Products:
    """Matrix products of one kind in one stage, in seconds: the arithmetic and the traffic of a
    token, and reading the weights once."""

    token_flops_s: float
    token_bytes_s: float
    weights_s: float

    def seconds(self, tokens: float) -> float:
        return max(tokens * self.token_flops_s, self.weights_s + tokens * self.token_bytes_s)


@dataclass(frozen=True, slots=True)
class _PipelineStage:
    """The part of one pipeline stage that depends on neither queue nor batch."""

    layers: int
    windowed: int
    expert_layers: int
    products: tuple[_Products, ...]
    experts: _Products | None
    head: _Products | None


class StepTime:
    """The duration of forward passes of one model, in one layout, on one kind of device."""

    def __init__(
        self, model: Architecture, layout: RankLayout, scheme: Quantization, device: Device
    ) -> None:
        self._model, self._layout, self._scheme = model, layout, scheme
        self._cost = device.efficiency
        self._flops = device.flops[scheme.compute] * self._cost.products
        plain: Compute = "fp32" if scheme.compute == "fp32" else "bf16"
        self._plain_flops = device.flops[plain] * self._cost.products
        self._bandwidth = device.bandwidth_bytes_s * self._cost.memory
        near = DeviceLink(device.link_bytes_s * self._cost.link, device.hop_s)
        far = DeviceLink(device.network_bytes_s * self._cost.link, device.network_hop_s)
        self._tensor_link = near
        self._stage_link = near if layout.tp * layout.pp <= device.per_node else far
        self._expert_link = near if layout.expert_ranks <= device.per_node else far
        self._token_bytes = model.hidden * scheme.plain_bytes
        self._attention_rates(device.flops[plain] * self._cost.attention)
        self._stages = Counter(self._stage(n) for n in range(layout.pp))

    def seconds(self, batch: ForwardBatch) -> float:
        """The duration of one round in which every sequence of `batch` advances.

        With pipeline parallelism the batch is split into equal micro-batches, one for each stage if
        there are enough sequences: a sequence waits for all stages, and the slowest stage for all
        micro-batches.
        """
        if self._layout.pp == 1:
            return self._stage_s(next(iter(self._stages)), batch)
        sequences = max(1, int(batch.decodes) + (batch.prefill_tokens > 0))
        parts = min(self._layout.pp, sequences)
        times = [
            (self._stage_s(stage, batch.part(parts)), count)
            for stage, count in self._stages.items()
        ]
        tokens = (batch.prefill_tokens + batch.decodes) / parts
        sending = self._stage_link.send_s(tokens * self._token_bytes)
        through = sum(t * n for t, n in times) + (self._layout.pp - 1) * sending
        return max(through, parts * (max(t for t, _ in times) + sending))

    def _stage_s(self, stage: _PipelineStage, batch: ForwardBatch) -> float:
        tokens = batch.prefill_tokens + batch.decodes
        seconds = self._cost.step_s + self._cost.layer_s * stage.layers
        seconds += self._cost.sequence_s * batch.sampled
        for products in stage.products:
            seconds += products.seconds(tokens)
        if stage.experts is not None:
            seconds += self._experts_s(stage.experts, tokens)
        if stage.head is not None:
            seconds += stage.head.seconds(batch.sampled)
        seconds += self._attention_s(stage, batch)
        return seconds + self._communication_s(stage, tokens, batch)

    def _experts_s(self, products: _Products, tokens: float) -> float:
        """Unchosen experts are not read: with even routing, (1 - k/n)^tokens of them."""
        moe, layout = self._model.experts, self._layout
        assert moe is not None
        routed = tokens * (layout.dp if layout.spread else 1)
        touched = 1 - float((1 - moe.per_token / moe.number) ** routed)
        return max(
            tokens * products.token_flops_s,
            touched * products.weights_s + tokens * products.token_bytes_s,
        )

    def _attention_s(self, stage: _PipelineStage, batch: ForwardBatch) -> float:
        """Scores and sums: arithmetic for prompts, mostly reading the KV cache for decodes."""
        seconds = stage.layers * batch.prefill_pairs * self._pair_s
        if not batch.decodes:
            return seconds
        context = batch.decode_context
        seconds += (stage.layers - stage.windowed) * context * self._context_s
        if stage.windowed:
            within = min(context, batch.decodes * float(self._model.window or 0))
            seconds += stage.windowed * within * self._context_s
        return seconds

    def _communication_s(self, stage: _PipelineStage, tokens: float, batch: ForwardBatch) -> float:
        """All-reduces over tensor ranks after attention and MLP; tokens sent to spread experts."""
        layout, size = self._layout, tokens * self._token_bytes
        if layout.tp == 1 and layout.expert_ranks == 1:
            return 0.0
        reduce_s = self._tensor_link.all_reduce_s(size, layout.tp)
        seconds = (2 * stage.layers + 1) * reduce_s  # plus one for the embedding
        if layout.spread and layout.dp > 1 and self._model.experts is not None:
            chosen = self._model.experts.per_token
            each = self._expert_link.exchange_s(size / layout.tp, layout.expert_ranks, chosen)
            seconds += stage.expert_layers * (2 * each - reduce_s)
        if stage.head is not None:
            scores = batch.sampled * self._model.vocab * self._scheme.plain_bytes
            seconds += self._tensor_link.gather_s(scores, layout.tp)
        return seconds

    def _attention_rates(self, flops: float) -> None:
        """Seconds for one token attending to another, in a prompt and in a decode, per layer."""
        model, tp = self._model, self._layout.tp
        heads, latent = model.heads / tp, model.latent
        if latent is None:
            pair = decode = 4 * heads * model.head_dim
        else:  # decodes stay in the compressed space (weights absorbed, DeepSeek-V2 2.1.2)
            pair = 2 * heads * (latent.plain_dim + latent.rotary_dim + latent.value_dim)
            decode = 2 * heads * (2 * latent.kv_rank + latent.rotary_dim)
        self._pair_s = pair / flops
        read = model.kv_elements(tp) * self._scheme.kv_bytes / self._bandwidth
        self._context_s = max(decode / flops, read)

    def _stage(self, number: int) -> _PipelineStage:
        model = self._model
        layers = self._layout.stages(model.layers)[number]
        matrices = [matrix for n in layers for matrix in model.layer(n)]
        roles: tuple[Role, ...] = ("attention", "mlp", "router")
        kinds = [[m for m in matrices if m.role == role] for role in roles]
        experts = [m for m in matrices if m.role == "experts"]
        last = number == self._layout.pp - 1
        return _PipelineStage(
            layers=len(layers),
            windowed=model.windowed_layers * len(layers) // model.layers,
            expert_layers=sum(model.has_experts(n) for n in layers),
            products=tuple(self._products(kind) for kind in kinds if kind),
            experts=self._products(experts) if experts else None,
            head=self._products([model.head]) if last else None,
        )

    def _products(self, matrices: list[Matrix]) -> _Products:
        flops = traffic = weights = 0.0
        for matrix in matrices:
            share = self._layout.share(self._model, matrix)
            rate = self._flops if matrix.quantizable else self._plain_flops
            # A rank of spread experts computes the tokens of all dp ranks.
            copies = self._layout.dp if matrix.role == "experts" and self._layout.spread else 1
            flops += 2 * matrix.active_parameters * share * copies / rate
            moved = (matrix.inputs + matrix.outputs) * matrix.active * share * copies
            traffic += moved * self._scheme.plain_bytes
            weights += self._scheme.stored_bytes(matrix, share)
        return _Products(flops, traffic / self._bandwidth, weights / self._bandwidth)
