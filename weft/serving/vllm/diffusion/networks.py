"""vLLM's own Llama and Qwen layers as diffusion models. Imported by vLLM alone, in its workers.

Attention without a mask and blocks are made by `state`; nothing here decides what is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from vllm.model_executor.models.llama import LlamaForCausalLM
from vllm.model_executor.models.qwen2 import Qwen2ForCausalLM
from vllm.model_executor.models.qwen3 import Qwen3ForCausalLM

from weft.decoding.diffusion.models.description import described
from weft.serving.vllm.diffusion.state import CanvasState

Weights = Iterable[tuple[str, torch.Tensor]]


class _Canvas:
    """Before one of vLLM's models: its weights' published names, and what left it last."""

    left: torch.Tensor
    """[tokens, width]: what left the last layer, of the pass before."""

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)  # type: ignore[call-arg]
        self._family = described(Path(vllm_config.model_config.model)).family

    @staticmethod
    def get_model_state_cls() -> type[CanvasState]:
        """What vLLM asks a model whose requests have a state of their own."""
        return CanvasState

    def forward(self, *given: Any, **named: Any) -> Any:
        """As the layers do."""
        left = super().forward(*given, **named)  # type: ignore[misc]
        self.left = left
        return left

    def load_weights(self, weights: Weights) -> Any:
        """By their published names."""
        return super().load_weights(self._renamed(weights))  # type: ignore[misc]

    def _renamed(self, weights: Weights) -> Iterator[tuple[str, torch.Tensor]]:
        family = self._family
        for name, tensor in weights:
            if not family.ignored or not name.startswith(family.ignored):
                yield family.renamed(name), tensor


class LlamaCanvas(_Canvas, LlamaForCausalLM):  # type: ignore[misc]
    """LLaDA, Tiny-A2D's Llama and weft's own."""


class Qwen2Canvas(_Canvas, Qwen2ForCausalLM):  # type: ignore[misc]
    """Dream, Dimple's language part, Fast-dLLM v2, Tiny-A2D's Qwen2 and weft's own."""


class Qwen3Canvas(_Canvas, Qwen3ForCausalLM):  # type: ignore[misc]
    """SDAR, Tiny-A2D's Qwen3 and weft's own."""
