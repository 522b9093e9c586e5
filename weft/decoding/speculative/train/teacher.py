"""The target as what drafters learn from: frozen, all texts of a batch at once, with gradients.

On transformers' own model and attention, unlike `Network`, which has no gradients. Knows no
drafter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers import AutoModelForCausalLM, DynamicCache

from weft.core.errors import InputError
from weft.decoding.network.loading import LOADING, quiet
from weft.decoding.speculative.train.corpus import Batch

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """A batch that was read, for rows that follow somewhere in it. Good for one use.

    `hidden` [texts, time, width] is what the head reads.
    """

    cache: DynamicCache
    hidden: torch.Tensor


class Teacher:
    """A causal language model that does not learn. Implements `artefact.Target`."""

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config.get_text_config()
        self._model = model.eval().requires_grad_(requires_grad=False)
        self.layers: int = config.num_hidden_layers
        self.width: int = config.hidden_size
        self.vocabulary_size: int = config.vocab_size

    @classmethod
    def load(cls, path: Path, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Teacher:
        """Read a model folder. Raises: `InputError` when that fails."""
        try:
            with LOADING, quiet():
                model = AutoModelForCausalLM.from_pretrained(
                    path,
                    dtype=dtype,
                    attn_implementation="sdpa",
                    use_safetensors=True,
                    local_files_only=True,
                ).to(device)
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"{path} is no model to learn from: {error}") from error
        return cls(model)

    @property
    def model(self) -> PreTrainedModel:
        """The model itself, for lessons that reach into its layers."""
        return self._model

    @property
    def device(self) -> torch.device:
        """Where it computes; what is learnt and the batches it is given are to be there, too."""
        device: torch.device = self._model.device
        return device

    def embed(self, tokens: Sequence[int]) -> torch.Tensor:
        """[tokens, width]: what it reads for tokens."""
        ids = torch.tensor(tokens, dtype=torch.int64, device=self._model.device)
        embedded: torch.Tensor = self._model.get_input_embeddings()(ids)
        return embedded

    def head(self, hidden: torch.Tensor, ids: torch.Tensor | None = None) -> torch.Tensor:
        """The logits [..., vocabulary], or [..., ids] of some tokens only, of [..., width]."""
        head = self._model.get_output_embeddings()
        if ids is None:
            logits: torch.Tensor = head(hidden)
            return logits
        bias = None if head.bias is None else head.bias[ids]
        return torch.nn.functional.linear(hidden, head.weight[ids], bias)

    def states(self, batch: Batch, taps: Collection[int]) -> dict[int, torch.Tensor]:
        """What enters the layers `taps`, [texts, time, width] each.

        The number of layers stands for what leaves the last one, normalised: what the head reads.
        """
        with torch.no_grad():
            output = self._model.base_model(
                input_ids=batch.tokens, use_cache=False, output_hidden_states=True
            )
        return {tap: output.hidden_states[tap] for tap in taps}

    def read(self, batch: Batch) -> Past:
        """Read texts, to go on from within them."""
        with torch.no_grad():
            cache = DynamicCache(config=self._model.config)
            output = self._model.base_model(
                input_ids=batch.tokens, use_cache=True, past_key_values=cache
            )
        return Past(cache, output.last_hidden_state)

    def onwards(
        self,
        past: Past,
        embedded: torch.Tensor,
        positions: torch.Tensor,
        sees: torch.Tensor,
    ) -> torch.Tensor:
        """What the head reads for rows of the same texts, [texts, rows, width], with gradients.

        embedded   [texts, rows, width]: what enters the first layer
        positions  [texts, rows]
        sees       [texts, rows, time + rows] bool: which tokens of the text, then which of the rows
        """
        mask = torch.zeros_like(sees, dtype=embedded.dtype)
        mask.masked_fill_(~sees, torch.finfo(embedded.dtype).min)
        output = self._model.base_model(
            inputs_embeds=embedded,
            position_ids=positions,
            attention_mask=mask[:, None],
            past_key_values=past.cache,
            use_cache=True,
        )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden
