"""Masked and block diffusion models in vLLM's own diffusion path, with weft's decoders.

That path needs vLLM's second model runner, and so a GPU; see `launch.diffusion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft.decoding.diffusion.models.families import LayerKind

ARCHITECTURES: Final[Mapping[LayerKind, str]] = {
    "llama": "WeftLlamaCanvas",
    "qwen2": "WeftQwen2Canvas",
    "qwen3": "WeftQwen3Canvas",
}
"""vLLM's names of the architectures, by kind of layers."""
CANVAS: Final = 64
"""Default length of vLLM's canvas for models without blocks."""
