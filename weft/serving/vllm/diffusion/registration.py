"""Registers weft's diffusion models with vLLM, in each of its processes."""

from __future__ import annotations

from typing import Final

from weft.serving.vllm.diffusion import ARCHITECTURES

_MODULE: Final = "weft.serving.vllm.diffusion.models"


def register_models() -> None:
    """Register architectures, their settings, and the model types of published folders.

    Models are named, not imported. Raises anything in a vLLM without a diffusion path.
    """
    from vllm.config.diffusion import DiffusionConfig  # noqa: F401 - does the path exist?
    from vllm.model_executor.models.config import MODELS_CONFIG_MAP
    from vllm.model_executor.models.registry import ModelRegistry

    from weft.serving.vllm.diffusion.config import CanvasSetting, teach_transformers

    teach_transformers()
    for architecture in ARCHITECTURES.values():
        name = architecture.removeprefix("Weft")
        ModelRegistry.register_model(architecture, f"{_MODULE}:{name}")
        MODELS_CONFIG_MAP[architecture] = CanvasSetting
