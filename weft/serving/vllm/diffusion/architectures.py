"""What weft's diffusion models are called inside vLLM. Knows neither vLLM nor torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.family import Body

ARCHITECTURES: Final[Mapping[Body, str]] = {
    "llama": "WeftLlamaCanvas",
    "qwen2": "WeftQwen2Canvas",
    "qwen3": "WeftQwen3Canvas",
}
"""By whose layers they have."""
CANVAS: Final = 64
"""Slots of vLLM's canvas for models without blocks, where nobody says."""
