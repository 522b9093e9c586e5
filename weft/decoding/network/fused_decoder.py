"""A pass through fused layers, in the place of the forward method of transformers' model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from weft.decoding.network.cache import KvCache
from weft.decoding.network.fused_layer import FusedLayer, PassState, RmsNorm, angles
from weft.decoding.network.packing import Step
from weft.decoding.network.write import Write

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class FusedDecoder:
    """Runs a model whose `layers` are fused ones; its embeddings, norm and head are its own."""

    def __init__(
        self, model: PreTrainedModel, layers: torch.nn.ModuleList, heads: int, kv_heads: int
    ) -> None:
        self._embedding = model.get_input_embeddings()
        self._rotary = model.base_model.rotary_emb
        self._norm = RmsNorm(model.base_model.norm)
        self._head = model.get_output_embeddings()
        self._layers: list[FusedLayer] = list(layers)
        self._heads, self._kv_heads = heads, kv_heads
        self.reads_prompts_apart = self._layers[0].prompt_linears is not None
        width: int = model.config.get_text_config().hidden_size
        ones = torch.ones(width, dtype=model.dtype, device=model.device)
        self._signs = torch.stack([ones, -ones])
        self._vocabulary: int = model.config.get_text_config().vocab_size

    def logits(self, step: Step, cache: KvCache) -> torch.Tensor:
        """float32 [wanted, vocabulary]; what the step's taps see is put into `step.hidden`.

        Where the network `reads_prompts_apart`, spans are all of prompts, or none is.
        """
        hidden = self._embedding(step.token_ids)
        way = self._state(step, cache, hidden)
        pair = hidden.unsqueeze(1) * self._signs
        looks = bool(step.taps or step.written)
        for layer in self._layers:
            if looks:
                pair = self._enter(step, layer.number, pair)
            pair = layer.forward(pair, way)
            if -layer.number - 1 in step.taps:
                step.hidden[-layer.number - 1] = pair[:, 0].contiguous()
        if len(self._layers) in step.taps:
            step.hidden[len(self._layers)] = self._norm(pair)
        if not len(step.wanted):
            return hidden.new_zeros(0, self._vocabulary, dtype=torch.float32)
        logits: torch.Tensor = self._head(self._norm(pair[step.wanted]))
        return logits.float()

    def _enter(self, step: Step, number: int, pair: torch.Tensor) -> torch.Tensor:
        if number in step.taps or number in step.written:
            hidden = enter(step, number, pair[:, 0].contiguous())
            return hidden.unsqueeze(1) * self._signs
        return pair

    def _state(self, step: Step, cache: KvCache, hidden: torch.Tensor) -> PassState:
        cos, sin = self._rotary(hidden[None], position_ids=step.positions[None])
        return PassState(
            step,
            cache,
            *angles(cos[0], sin[0], self._heads, self._kv_heads),
            cache.places(step.slots, step.columns),
            tuple(cache.windows(group.low, group.high, group.columns) for group in step.groups),
            self._layers[0].number,
            self._signs,
            prompt=step.spans[0].prompt,
        )


def enter(step: Step, number: int, hidden: torch.Tensor) -> torch.Tensor:
    """What enters layer `number`, [tokens, width]: written over and looked at as the step says."""
    if number in step.written:
        hidden = hidden.clone()
        for first, last, write in step.written[number]:
            hidden[_rows(write, first, hidden)] = write.make(hidden[first:last]).to(hidden.dtype)
    if number in step.taps:
        step.hidden[number] = hidden
    return hidden


def _rows(write: Write, first: int, hidden: torch.Tensor) -> torch.Tensor:
    return torch.tensor(write.rows, device=hidden.device) + first
