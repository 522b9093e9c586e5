"""A rank's part of a draft model: some attentions whole, and a slice of everything else.

Attention `n` belongs to rank `n` modulo the number of ranks, with its keys and values. Every MLP is
cut along its inner width (Megatron-LM, arXiv 1909.08053), the head along the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from weft.core.errors import CapabilityError
from weft.decoding.network.cache import KvCache
from weft.decoding.network.options import NetworkOptions
from weft.decoding.network.packing import PackedBatch
from weft.decoding.network.quantization import pack_linears

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel


@dataclass(frozen=True, slots=True)
class ShardLayout:
    """A draft model over `ranks`, each with `threads` of its own.

    path        the model's folder; its first `layers` layers are used, None for all
    group       number of neighbouring layers that attend to the same input when drafting, except
                the first and the last layer, which matter most. 1: drafts are exact
    device      "cpu", or "cuda" for one device per rank
    vocabulary  number of tokens of the target, which the draft model must have, too; None: any

    Raises: `ValueError` for sizes below one.
    """

    path: Path
    ranks: int = 2
    group: int = 3
    layers: int | None = None
    threads: int = 1
    device: str = "cpu"
    dtype: str = "auto"
    vocabulary: int | None = None

    def __post_init__(self) -> None:
        for name in ("ranks", "group", "layers", "threads"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"{name} must be at least 1, not {size}")

    def groups(self, layers: int) -> tuple[range, ...]:
        """The groups of layers, in order, that attend together when drafting."""
        last = layers - 1
        inner = [range(a, min(a + self.group, last)) for a in range(1, last, self.group)]
        return (range(1), *inner, *([range(last, layers)] if last else []))

    def options(self, rank: int) -> NetworkOptions:
        """The network options of a rank."""
        device = self.device if self.device == "cpu" else f"{self.device}:{rank}"
        return NetworkOptions(dtype=self.dtype, device=device, threads=self.threads)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """A JSON value for another process."""
        return {**asdict(self), "path": str(self.path)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ShardLayout:
        """The layout in a value of `to_json`."""
        return cls(**{**data, "path": Path(data["path"])})


def rank_slice(total: int, rank: int, ranks: int) -> slice:
    """The part of `total` rows that belongs to a rank."""
    return slice(total * rank // ranks, total * (rank + 1) // ranks)


KINDS = ("llama", "mistral", "qwen2", "qwen3")
Angles = tuple[torch.Tensor, torch.Tensor]


class Shard(nn.Module):  # type: ignore[misc]
    """Rank `rank` of `ranks` for the first `layers` layers of `model`, which it may modify.

    Raises: `CapabilityError` for a model of another architecture.
    """

    def __init__(self, model: PreTrainedModel, layers: int, rank: int, ranks: int) -> None:
        super().__init__()
        config = check_kind(model.config.get_text_config())
        base = model.base_model
        self._rank, self._ranks = rank, ranks
        self._embedding = base.embed_tokens
        self._rotary = base.rotary_emb
        self._norm = base.norm
        used = base.layers[:layers]
        self._norms = nn.ModuleList(layer.input_layernorm for layer in used)
        self._attentions = nn.ModuleList(layer.self_attn for layer in used[rank::ranks])
        for place, attention in enumerate(self._attentions):
            attention.layer_idx = place  # its place in the cache of this rank
        self._feeds = nn.ModuleList(_Feed(layer, rank, ranks) for layer in used)
        head = model.get_output_embeddings()
        cut = rank_slice(config.vocab_size, rank, ranks)
        self._first_id = cut.start
        self._head = _linear(head.weight[cut], None if head.bias is None else head.bias[cut])
        heads = config.num_attention_heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        self.queries_per_key = heads // kv_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        self.dtype, self.device = model.dtype, model.device
        self._cache = KvCache(len(self._attentions), kv_heads, width, self.dtype, self.device)
        with torch.inference_mode():
            pack_linears(self)

    def reserve(self, slots: int, columns: int) -> None:
        """Reserve cache for rows and their tokens."""
        self._cache.reserve(slots, columns)

    def embed(self, step: PackedBatch) -> tuple[torch.Tensor, Angles]:
        """The input of the first layer, [tokens, width], and the rotation of positions."""
        hidden = self._embedding(step.token_ids)
        return hidden, self._rotary(hidden[None], position_ids=step.positions[None])

    def attend(
        self, layers: range, hidden: torch.Tensor, angles: Angles, step: PackedBatch
    ) -> torch.Tensor:
        """The outputs of this rank's part of `layers` for the same `hidden`, [tokens, width].

        Writes their keys and values. Returns [most of `layers` on one rank, tokens, width]; rows of
        other ranks' layers are zero.
        """
        most = -(-len(layers) // self._ranks)
        outputs = hidden.new_zeros(most, *hidden.shape)
        own = [layer for layer in layers if layer % self._ranks == self._rank]
        for place, layer in enumerate(own):
            attended, _ = self._attentions[layer // self._ranks](
                hidden_states=self._norms[layer](hidden)[None],
                position_embeddings=angles,
                attention_mask=None,
                step=step,
                cache=self._cache,
            )
            outputs[place] = attended[0]
        return outputs

    def feed(self, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """This rank's summand of an MLP's output: [tokens, width] -> [tokens, width]."""
        fed: torch.Tensor = self._feeds[layer](hidden)
        return fed

    def best(self, hidden: torch.Tensor) -> torch.Tensor:
        """The likeliest of this rank's ids after each row of [rows, width]: logit, id; float64."""
        logit, row = self._head(self._norm(hidden)).max(dim=-1)
        return torch.stack([logit.double(), row.double() + self._first_id], dim=-1)


class _Feed(nn.Module):  # type: ignore[misc]
    """A slice of a gated MLP, with the norm before it."""

    def __init__(self, layer: nn.Module, rank: int, ranks: int) -> None:
        super().__init__()
        mlp = layer.mlp
        cut = rank_slice(mlp.down_proj.in_features, rank, ranks)
        self.norm = layer.post_attention_layernorm
        self.gate = _linear(mlp.gate_proj.weight[cut], _part(mlp.gate_proj.bias, cut))
        self.up = _linear(mlp.up_proj.weight[cut], _part(mlp.up_proj.bias, cut))
        # the bias is added once, by rank 0
        self.down = _linear(mlp.down_proj.weight[:, cut], None if rank else mlp.down_proj.bias)
        self.act = mlp.act_fn

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """[tokens, width] -> [tokens, width]"""
        read = self.norm(hidden)
        fed: torch.Tensor = self.down(self.act(self.gate(read)) * self.up(read))
        return fed


def check_kind(config: PretrainedConfig) -> PretrainedConfig:
    """`config`, if `Shard` supports its model. Raises: `CapabilityError`."""
    if config.model_type not in KINDS:
        raise CapabilityError(
            f"a {config.model_type} model cannot draft layer-parallel",
            hint=f"models of these kinds can: {', '.join(KINDS)}",
        )
    return config


def own_ids(parts: Sequence[torch.Tensor]) -> list[int]:
    """The likeliest ids by row over `best` of all ranks; the lowest of equals."""
    ranks = torch.stack(list(parts))  # [ranks, rows, 2]
    winner = ranks[:, :, 0].argmax(dim=0, keepdim=True)
    ids: list[int] = ranks[:, :, 1].gather(0, winner)[0].long().tolist()
    return ids


def _part(bias: torch.Tensor | None, cut: slice) -> torch.Tensor | None:
    return None if bias is None else bias[cut]


def _linear(weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    """A layer with copies of slices, so that the whole can be freed."""
    outputs, inputs = weight.shape
    linear = nn.Linear(inputs, outputs, bias=bias is not None, device="meta")
    linear.weight = nn.Parameter(weight.detach().clone(), requires_grad=False)
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach().clone(), requires_grad=False)
    return linear
