"""Names of what a request tells vLLM's workers in `vllm_xargs`, beside vLLM's own fields."""

from __future__ import annotations

from typing import Final

FIELD: Final = "vllm_xargs"
NODE: Final = "weft_node"
"""Which node of a program asks: what proposers draw their drafts by."""
DECODE: Final = "weft_decode"
"""A diffusion model's decoder, as people write it. In `additional_config`: the default."""
TEMPERATURE: Final = "weft_temperature"
SEED: Final = "weft_seed"
"""vLLM refuses its own temperature and seed for diffusion models."""
