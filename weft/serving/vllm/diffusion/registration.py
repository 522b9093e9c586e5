"""Names of weft's diffusion models inside vLLM, and making them known in each of its processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.families import LayerKind


_MODULE: Final = "weft.serving.vllm.diffusion.models"


def register_models() -> None:
    """Architectures, what they need set, and the model types of published folders.

    Models are named, not imported. Raises whatever a vLLM without a diffusion path raises.
    """
    from vllm.config.diffusion import DiffusionConfig  # noqa: F401 - is there such a path at all?
    from vllm.model_executor.models.config import MODELS_CONFIG_MAP
    from vllm.model_executor.models.registry import ModelRegistry

    from weft.serving.vllm.diffusion.config import CanvasSetting, teach_transformers

    teach_transformers()
    for architecture in ARCHITECTURES.values():
        name = architecture.removeprefix("Weft")
        ModelRegistry.register_model(architecture, f"{_MODULE}:{name}")
        MODELS_CONFIG_MAP[architecture] = CanvasSetting


ARCHITECTURES: Final[Mapping[LayerKind, str]] = {
    "llama": "WeftLlamaCanvas",
    "qwen2": "WeftQwen2Canvas",
    "qwen3": "WeftQwen3Canvas",
}
"""By whose layers they have."""
CANVAS: Final = 64
"""Slots of vLLM's canvas for models without blocks, by default."""
