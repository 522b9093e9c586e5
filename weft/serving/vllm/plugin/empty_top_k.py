"""Speculation and a top_k without a top_p on a CPU: a step in which nothing was drafted.

vLLM 0.32 sends every step of a speculating engine through the rejection sampler, also a first
prefill, which has no draft tokens: the largest top_k of none raises, and the engine dies with it.
Knows the one function, not who calls it.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

import torch

_HOME = "vllm.v1.sample.ops.topk_topp_sampler"


class EmptyTopK:
    """`apply_top_k_only` cannot be asked about no rows."""

    name = "top_k in steps without draft tokens"
    why = "the largest top_k of no rows raised, which killed the engine"

    def probe(self) -> bool:
        """Whether the installed function fails on no rows."""
        sampler = import_module(_HOME)
        try:
            sampler.apply_top_k_only(torch.empty(0, 4), torch.empty(0, dtype=torch.int32))
        except RuntimeError:
            return True
        return False

    def apply(self) -> None:
        """Answer for no rows; leave all others to the function itself."""
        sampler: Any = import_module(_HOME)
        mask = sampler.apply_top_k_only

        @functools.wraps(mask)
        def mask_some(logits: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            masked: torch.Tensor = mask(logits, k) if logits.shape[0] else logits
            return masked

        sampler.apply_top_k_only = mask_some
