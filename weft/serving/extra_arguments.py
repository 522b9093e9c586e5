"""Names of weft's fields in a request's `vllm_xargs`, next to vLLM's own."""

from __future__ import annotations

from typing import Final

FIELD: Final = "vllm_xargs"
NODE: Final = "weft_node"
"""The node of the program that asks; proposers choose their drafts by it."""
DECODE: Final = "weft_decode"
"""A diffusion model's decoder, as users write it. In `additional_config`: the default."""
TEMPERATURE: Final = "weft_temperature"
SEED: Final = "weft_seed"
"""vLLM refuses its own temperature and seed for diffusion models."""
RESERVED_FIELDS: Final = frozenset(
    {"model", "messages", "prompt", "stream", "stream_options", "n", "tools", "response_format"}
)
"""Fields of a request's body that weft always sets itself."""
