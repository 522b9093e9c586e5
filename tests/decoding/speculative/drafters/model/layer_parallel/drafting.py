"""A draft model that is computed token by token without any of our own layers, to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from weft.decoding.speculative.drafters.model.layer_parallel.shard import ShardLayout


def exact(path: Path) -> ShardLayout:
    """float32, one thread."""
    return ShardLayout(path, dtype="float32")


class Reference:
    """transformers' own model; with groups, by hand, from its own sub-modules and no cache."""

    def __init__(self, path: Path, layers: int | None = None) -> None:
        self.model: Any = AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, attn_implementation="eager"
        )
        if layers is not None:
            self.model.model.layers = self.model.model.layers[:layers]
            self.model.config.num_hidden_layers = layers

    def greedy(self, tokens: Sequence[int], count: int) -> list[int]:
        text = list(tokens)
        with torch.inference_mode():
            for _ in range(count):
                logits = self.model(torch.tensor([text]), use_cache=False).logits
                text.append(int(logits[0, -1].argmax()))
        return text[len(tokens) :]

    def grouped(self, tokens: Sequence[int], count: int, groups: Sequence[range]) -> list[int]:
        """Tokens `tokens` are read in order, each drafted one with the groups' shared input.

        The keys of every token are those of the pass that read it.
        """
        base = self.model.model
        alone = [range(n, n + 1) for group in groups for n in group]
        keys: dict[int, torch.Tensor] = {}
        """By layer: what its attention read of each token, [tokens, width]: keys come of it."""
        drafted: list[int] = []
        with torch.inference_mode():
            hidden = self._pass(torch.tensor(tokens), 0, alone, keys)
            drafted.append(self._best(hidden))
            while len(drafted) < count:
                at = len(tokens) + len(drafted) - 1
                hidden = self._pass(torch.tensor(drafted[-1:]), at, groups, keys)
                drafted.append(self._best(hidden))
        assert base is self.model.model
        return drafted

    def _pass(
        self, ids: torch.Tensor, first: int, groups: Sequence[range], keys: dict[int, torch.Tensor]
    ) -> torch.Tensor:
        base = self.model.model
        hidden = base.embed_tokens(ids)
        for group in groups:
            entering = hidden
            for number in group:
                layer = base.layers[number]
                read = layer.input_layernorm(entering)
                keys[number] = torch.cat([*([keys[number]] if first else []), read])
                hidden = hidden + self._attend(layer, keys[number])[-len(ids) :]
                hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
        return hidden

    def _attend(self, layer: Any, read: torch.Tensor) -> torch.Tensor:
        """[tokens, width]: all tokens anew, each over those before it."""
        count = len(read)
        angles = self.model.model.rotary_emb(read[None], position_ids=torch.arange(count)[None])
        mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
        found, _ = layer.self_attn(
            hidden_states=read[None], position_embeddings=angles, attention_mask=mask
        )
        return found[0]

    def _best(self, hidden: torch.Tensor) -> int:
        return int(self.model.lm_head(self.model.model.norm(hidden[-1])).argmax())
