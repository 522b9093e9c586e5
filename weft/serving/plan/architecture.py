"""The shape of a decoder-only transformer: matrices, parameters, KV cache, number formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal

Cut = Literal["heads", "kv_heads", "width", "experts", "whole"]
Role = Literal["attention", "mlp", "experts", "router", "embedding", "head"]


@dataclass(frozen=True, slots=True)
class Matrix:
    """`copies` matrices of `inputs` x `outputs`.

    cut         what is divided among tensor-parallel ranks: attention heads, key/value heads
                (which are repeated where there are fewer than ranks), the inner width of an MLP,
                whole experts or their width, or nothing
    row_cut     the cut divides the inputs (as in the output projection), not the outputs
    active      the number of `copies` that one token passes through
    """

    name: str
    role: Role
    inputs: int
    outputs: int
    cut: Cut
    row_cut: bool = False
    copies: int = 1
    active: int = 1

    @property
    def parameters(self) -> int:
        """The number of weights of all copies."""
        return self.inputs * self.outputs * self.copies

    @property
    def active_parameters(self) -> int:
        """The number of weights that one token is multiplied with."""
        return self.inputs * self.outputs * self.active

    @property
    def quantizable(self) -> bool:
        """Whether AWQ, GPTQ and FP8 store it in fewer bits: linear layers, not router or head."""
        return self.role in ("attention", "mlp", "experts")


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2): sizes of the compressed queries, keys, values."""

    query_rank: int | None
    kv_rank: int
    plain_dim: int
    rotary_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts. `shared_width` is the inner width of the experts all tokens pass."""

    number: int
    per_token: int
    width: int
    shared_width: int = 0


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes of a model. `name` is only for messages.

    mlp_width       inner width of the layers without experts
    dense_layers    which layers have no experts: all, if `experts` is None
    window          tokens that `windowed_layers` layers look back; None: all of them
    checkpoint      the number format of the weights, as the model's file states it
    weight_block    side of the square blocks that share a scale, in checkpoints of that kind
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp_width: int
    vocab: int
    context_tokens: int
    tied: bool
    checkpoint: str = "bf16"
    weight_block: int | None = None
    attention_bias: bool = False
    query_key_norm: bool = False
    latent: Latent | None = None
    experts: Experts | None = None
    dense_layers: frozenset[int] = frozenset()
    window: int | None = None
    windowed_layers: int = 0

    def has_experts(self, layer: int) -> bool:
        """Whether the layer (counted from 0) is a mixture of experts."""
        return self.experts is not None and layer not in self.dense_layers

    def attention(self) -> tuple[Matrix, ...]:
        """The projections of one layer's attention."""
        if self.latent is not None:
            return self._latent_attention(self.latent)
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return (
            Matrix("q", "attention", self.hidden, queries, "heads"),
            Matrix("k", "attention", self.hidden, keys, "kv_heads"),
            Matrix("v", "attention", self.hidden, keys, "kv_heads"),
            Matrix("o", "attention", queries, self.hidden, "heads", row_cut=True),
        )

    def _latent_attention(self, latent: Latent) -> tuple[Matrix, ...]:
        queries = self.heads * (latent.plain_dim + latent.rotary_dim)
        values = self.heads * latent.value_dim
        up = self.heads * (latent.plain_dim + latent.value_dim)
        compressed = latent.kv_rank + latent.rotary_dim
        first: tuple[Matrix, ...]
        if latent.query_rank is None:
            first = (Matrix("q", "attention", self.hidden, queries, "heads"),)
        else:
            first = (
                Matrix("q_a", "attention", self.hidden, latent.query_rank, "whole"),
                Matrix("q_b", "attention", latent.query_rank, queries, "heads"),
            )
        return (
            *first,
            Matrix("kv_a", "attention", self.hidden, compressed, "whole"),
            Matrix("kv_b", "attention", latent.kv_rank, up, "heads"),
            Matrix("o", "attention", values, self.hidden, "heads", row_cut=True),
        )

    def feed_forward(self, layer: int) -> tuple[Matrix, ...]:
        """The matrices after one layer's attention: a gated MLP, or a router and its experts."""
        if self.experts is None or not self.has_experts(layer):
            return self._gated(self.mlp_width)
        moe = self.experts
        n, k = moe.number, moe.per_token
        shared = self._gated(moe.shared_width) if moe.shared_width else ()
        return (
            Matrix("router", "router", self.hidden, n, "whole"),
            Matrix("w1", "experts", self.hidden, 2 * moe.width, "experts", copies=n, active=k),
            Matrix("w2", "experts", moe.width, self.hidden, "experts", True, n, k),
            *shared,
        )

    def _gated(self, width: int) -> tuple[Matrix, ...]:
        return (
            Matrix("gate_up", "mlp", self.hidden, 2 * width, "width"),
            Matrix("down", "mlp", width, self.hidden, "width", row_cut=True),
        )

    def layer(self, number: int) -> tuple[Matrix, ...]:
        """All matrices of one layer."""
        return self.attention() + self.feed_forward(number)

    @property
    def embedding(self) -> Matrix:
        """Token ids to vectors: a look-up without multiplication."""
        return Matrix("embedding", "embedding", self.vocab, self.hidden, "width", active=0)

    @property
    def head(self) -> Matrix:
        """Vectors to scores of all tokens; where `tied`, the same weights as the embedding."""
        return Matrix("head", "head", self.hidden, self.vocab, "width")

    def vectors(self) -> int:
        """Weights of one layer outside matrices: norms and biases. Every rank has them."""
        count = 2 * self.hidden
        if self.query_key_norm:
            count += 2 * self.head_dim
        if self.attention_bias:
            count += (self.heads + 2 * self.kv_heads) * self.head_dim
        if self.latent is not None:
            count += self.latent.kv_rank + (self.latent.query_rank or 0)
        return count

    @property
    def parameters(self) -> int:
        """All weights of the model; tied ones count once."""
        layers = sum(m.parameters for n in range(self.layers) for m in self.layer(n))
        ends = self.embedding.parameters + (0 if self.tied else self.head.parameters)
        return layers + self.layers * self.vectors() + ends + self.hidden

    @property
    def active_parameters(self) -> int:
        """The weights that one token uses: all, but only the chosen experts."""
        idle = sum(
            m.parameters - m.active_parameters
            for n in range(self.layers)
            for m in self.feed_forward(n)
        )
        return self.parameters - idle

    def kv_elements(self, tp: int) -> int:
        """Numbers in the KV cache for one token in one layer on one of `tp` ranks.

        Fewer key/value heads than ranks are repeated. A latent cache is whole on every rank.
        """
        if self.latent is not None:
            return self.latent.kv_rank + self.latent.rotary_dim
        return 2 * max(1, self.kv_heads // tp) * self.head_dim


Compute = Literal["fp32", "bf16", "fp8"]


@dataclass(frozen=True, slots=True)
class Quantization:
    """A number format of the weights.

    plain_bytes       a weight that stays as it is: embedding, head, router, norms
    weight_bits       a weight of a linear layer
    group             weights that share a scale; None: one scale for each output
    group_bytes       the scale, and the zero point where there is one
    compute           the format of the products
    kv_bytes          one number of the KV cache
    argument          vLLM's name for quantizing plain weights while loading them, if it can
    """

    name: str
    plain_bytes: int = 2
    weight_bits: int = 16
    group: int | None = None
    group_bytes: float = 0.0
    compute: Compute = "bf16"
    kv_bytes: int = 2
    argument: str | None = None

    def stored_bytes(self, matrix: Matrix, share: float) -> int:
        """Bytes of the share of `matrix` on one rank, scales included."""
        weights = matrix.parameters * share
        if not matrix.quantizable:
            return ceil(weights * self.plain_bytes)
        scales = weights / (self.group or matrix.inputs)
        return ceil(weights * self.weight_bits / 8 + scales * self.group_bytes)


QUANTIZATIONS: Mapping[str, Quantization] = {
    scheme.name: scheme
    for scheme in (
        Quantization("fp32", plain_bytes=4, weight_bits=32, compute="fp32", kv_bytes=4),
        Quantization("bf16"),
        Quantization("fp8", weight_bits=8, group_bytes=4, compute="fp8", argument="fp8"),
        # AWQ and GPTQ: groups of 128 with a 16-bit scale and a 4-bit zero point, bf16 products
        Quantization("int4", weight_bits=4, group=128, group_bytes=2.5),
    )
}
