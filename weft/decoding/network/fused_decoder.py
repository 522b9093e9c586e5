"""A decoder layer of the Llama family in as few calls of torch as it takes.

Queries, keys and values come of one product, gate and up of another; all turn at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.functional import silu

from weft.decoding.network.attention import attend_group
from weft.decoding.network.cache import KvCache, Windows
from weft.decoding.network.options import Quantization
from weft.decoding.network.packing import HiddenStateWrite, PackedBatch

if TYPE_CHECKING:
    from transformers import PreTrainedModel


LinearMaker = Callable[[torch.Tensor, torch.Tensor | None], nn.Module]
_KINDS = frozenset({"llama", "mistral", "qwen2"})
_PARTS = frozenset({"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"})


@dataclass(frozen=True, slots=True)
class PassState:
    """What all layers of one pass share.

    cos, sin: how far heads turn, [tokens, heads + 2 * kv_heads, head_dim]; values do not, and sines
    have the sign of what they multiply. `windows` are the keys and values that each group of the
    step sees, `places` where its tokens are written; `first` is the number of the first layer.
    `signs` are those of a row and its negative, [2, width]. `prompt`: the linear layers for prompts
    multiply.
    """

    step: PackedBatch
    cache: KvCache
    cos: torch.Tensor
    sin: torch.Tensor
    places: torch.Tensor
    windows: tuple[Windows, ...]
    first: int
    signs: torch.Tensor
    prompt: bool = False


class PassAngles:
    """The cosines and sines of `PassState`, of rotary positions whose halves turn against each
    other. `rotary` is the module of transformers, whose angles do not depend on a pass.

    On a CPU those of a position are computed once, in a table that grows by doubling.
    """

    def __init__(self, rotary: nn.Module, heads: int, kv_heads: int, like: torch.Tensor) -> None:
        self._rotary, self._like = rotary, like
        self._heads, self._turning = heads + 2 * kv_heads, heads + kv_heads
        self._has_table = like.device.type == "cpu"
        self._table = like.new_empty(0, 0, 0)

    def __call__(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """positions: [tokens]"""
        if not self._has_table:
            found = self._computed(positions)
        else:
            last = int(positions.max())
            if last >= len(self._table):
                self._table = self._computed(torch.arange(1 << max(last, 255).bit_length()))
            found = self._table.index_select(0, positions)
        cos, sin = found.split(1, 1)  # the axis of heads
        shape = (len(positions), self._heads, found.shape[-1])
        all_cos, all_sin = cos.new_ones(shape), sin.new_zeros(shape)
        all_cos[:, : self._turning] = cos
        all_sin[:, : self._turning] = sin
        return all_cos, all_sin

    def _computed(self, positions: torch.Tensor) -> torch.Tensor:
        """[positions, 2, head_dim]: cosines, and sines with the sign of what they multiply."""
        cos, sin = self._rotary(self._like, position_ids=positions[None])
        first, second = sin[0].chunk(2, -1)
        return torch.stack((cos[0], torch.cat((-first, second), -1)), 1)


def can_fuse(model: PreTrainedModel, layers: nn.ModuleList | None) -> bool:
    """Whether the layers are those that `FusedLayer` computes."""
    config = model.config.get_text_config()
    return (
        layers is not None
        and config.model_type in _KINDS
        and config.hidden_act == "silu"
        and not getattr(config, "sliding_window", None)
        and all({name for name, _ in layer.named_children()} == _PARTS for layer in layers)
    )


class RmsNorm:
    """Root mean square norm by the kernel of layer norm, which torch has for CPUs: that of x and
    -x together, whose mean is 0. torch's own rms_norm is eight operations there.

    `module` is the norm of transformers.
    """

    def __init__(self, module: nn.Module) -> None:
        self._weight = module.weight.detach().repeat(2, 1)
        self._shape = tuple(self._weight.shape)
        self._epsilon: float = module.variance_epsilon

    def __call__(self, pair: torch.Tensor) -> torch.Tensor:
        """pair: x and -x, [rows, 2, width] -> [rows, width]"""
        found = torch.layer_norm(pair, self._shape, self._weight, None, self._epsilon)
        return found.select(1, 0).contiguous()


class Linears:
    """The products of one layer; `make` lays a weight and a bias out."""

    def __init__(self, layer: nn.Module, make: LinearMaker) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.qkv = make(*_joined(attention.q_proj, attention.k_proj, attention.v_proj))
        self.out = make(*_joined(attention.o_proj))
        self.gate_up = make(*_joined(mlp.gate_proj, mlp.up_proj))
        self.down = make(*_joined(mlp.down_proj))


class FusedLayer(nn.Module):  # type: ignore[misc]
    """Computes what the layer of transformers does that it is made from. Inference only.

    `number` is the layer's in the whole model; `make` lays a weight and a bias out, in
    `quantization`, and `make_prompt` does for passes over prompts; without it those are as others.
    """

    def __init__(
        self,
        layer: nn.Module,
        number: int,
        kv_heads: int,
        make: LinearMaker,
        quantization: Quantization,
        make_prompt: LinearMaker | None = None,
    ) -> None:
        super().__init__()
        self.quantization = quantization
        attention = layer.self_attn
        self.number = number
        self._kv_heads = kv_heads
        self._head_dim = attention.head_dim
        self._scaling: float = attention.scaling
        self._before_attention = RmsNorm(layer.input_layernorm)
        self._before_mlp = RmsNorm(layer.post_attention_layernorm)
        self.linears = Linears(layer, make)
        self.prompt_linears = None if make_prompt is None else Linears(layer, make_prompt)

    def forward(self, pair: torch.Tensor, state: PassState) -> torch.Tensor:
        """pair: what enters and its negative, [tokens, 2, width], as norms need it -> the same of
        what leaves. Writes the tokens' keys and values to the cache.

        Parts are called by `forward`: what else a call of a module does takes longer than it.
        """
        linears = self.linears
        if state.prompt and self.prompt_linears is not None:
            linears = self.prompt_linears
        joined = linears.qkv.forward(self._before_attention(pair))
        tokens = joined.shape[0]  # `len` of a tensor is a function of Python
        rows = joined.view(tokens, -1, self._head_dim)
        turned = torch.addcmul(rows * state.cos, rows.roll(self._head_dim // 2, -1), state.sin)
        query, entry = turned.tensor_split((rows.shape[1] - 2 * self._kv_heads,), 1)
        state.cache.write(self.number, state.places, entry)
        query = query.view(tokens, self._kv_heads, -1, self._head_dim)
        found = linears.out.forward(self._attend(query, state))
        pair = torch.addcmul(pair, found.unsqueeze(1), state.signs)
        gate, up = linears.gate_up.forward(self._before_mlp(pair)).chunk(2, -1)
        found = linears.down.forward(silu(gate).mul_(up))
        return torch.addcmul(pair, found.unsqueeze(1), state.signs)

    def _attend(self, query: torch.Tensor, state: PassState) -> torch.Tensor:
        """query: [tokens, kv_heads, heads / kv_heads, head_dim] -> [tokens, heads * head_dim]"""
        at = self.number - state.first
        parts = [
            attend_group(group, query, keys[at], values[at], self._scaling)
            for group, (keys, values) in zip(state.step.groups, state.windows, strict=True)
        ]
        segment_attention = state.step.segment_attention
        if segment_attention is not None:
            by_head = query.flatten(1, 2).transpose(0, 1)
            halves = state.cache.halves(self.number)
            parts.append(segment_attention.attend(by_head, *halves, self._scaling).flatten(1))
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def _joined(*linears: nn.Linear) -> tuple[torch.Tensor, torch.Tensor | None]:
    weight = torch.cat([linear.weight.detach() for linear in linears])
    if all(linear.bias is None for linear in linears):
        return weight, None
    biases = [
        linear.weight.new_zeros(len(linear.weight)) if linear.bias is None else linear.bias.detach()
        for linear in linears
    ]
    return weight, torch.cat(biases)


class FusedDecoder:
    """Runs a model whose `layers` are fused ones; its embeddings, norm and head are its own."""

    def __init__(
        self, model: PreTrainedModel, layers: torch.nn.ModuleList, heads: int, kv_heads: int
    ) -> None:
        self._embedding = model.get_input_embeddings()
        like = torch.empty(0, dtype=model.dtype, device=model.device)
        self._angles = PassAngles(model.base_model.rotary_emb, heads, kv_heads, like)
        self._norm = RmsNorm(model.base_model.norm)
        self._head = model.get_output_embeddings()
        self._layers: list[FusedLayer] = list(layers)
        self.reads_prompts_apart = self._layers[0].prompt_linears is not None
        width: int = model.config.get_text_config().hidden_size
        ones = torch.ones(width, dtype=model.dtype, device=model.device)
        self._signs = torch.stack([ones, -ones])
        self._vocabulary: int = model.config.get_text_config().vocab_size

    def logits(self, step: PackedBatch, cache: KvCache) -> torch.Tensor:
        """float32 [wanted, vocabulary]; what the step's taps see is put into `step.hidden`.

        Where the network `reads_prompts_apart`, spans are all of prompts, or none is.
        """
        hidden = self._embedding(step.token_ids)
        state = self._state(step, cache)
        pair = hidden.unsqueeze(1) * self._signs
        looks = bool(step.taps or step.written)
        for layer in self._layers:
            if looks:
                pair = self._enter(step, layer.number, pair)
            pair = layer.forward(pair, state)
            if -layer.number - 1 in step.taps:
                step.hidden[-layer.number - 1] = pair[:, 0].contiguous()
        if len(self._layers) in step.taps:
            step.hidden[len(self._layers)] = self._norm(pair)
        if not len(step.wanted):
            return hidden.new_zeros(0, self._vocabulary, dtype=torch.float32)
        logits: torch.Tensor = self._head(self._norm(pair[step.wanted]))
        return logits.float()

    def _enter(self, step: PackedBatch, number: int, pair: torch.Tensor) -> torch.Tensor:
        if number in step.taps or number in step.written:
            hidden = enter(step, number, pair[:, 0].contiguous())
            return hidden.unsqueeze(1) * self._signs
        return pair

    def _state(self, step: PackedBatch, cache: KvCache) -> PassState:
        return PassState(
            step,
            cache,
            *self._angles(step.positions),
            cache.places(step.slots, step.columns),
            tuple(cache.windows(group.low, group.high, group.columns) for group in step.groups),
            self._layers[0].number,
            self._signs,
            prompt=step.spans[0].prompt,
        )


def enter(step: PackedBatch, number: int, hidden: torch.Tensor) -> torch.Tensor:
    """What enters layer `number`, [tokens, width]: written over and looked at as the step says."""
    if number in step.written:
        hidden = hidden.clone()
        for first, last, write in step.written[number]:
            hidden[_rows(write, first, hidden)] = write.make(hidden[first:last]).to(hidden.dtype)
    if number in step.taps:
        step.hidden[number] = hidden
    return hidden


def _rows(write: HiddenStateWrite, first: int, hidden: torch.Tensor) -> torch.Tensor:
    return torch.tensor(write.rows, device=hidden.device) + first
