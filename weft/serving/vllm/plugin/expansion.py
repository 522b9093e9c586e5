"""Speculative sampling on a CPU: each request's temperature, top_k and top_p, once per draft token.

vLLM 0.32 hands its C++ kernel an int64 copy of the output and never copies it back: the sampler
divides logits by uninitialised memory. Knows the one function, not who calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

Expand = Callable[..., torch.Tensor]
_HOME = "vllm.v1.sample.rejection_sampler"
_ENDS = (2, 3, 3, 6)
_OWNERS = (0, 0, 1, 3, 3, 3)


class TokenExpansion:
    """`expand_batch_to_tokens` returns memory that nobody wrote to."""

    name = "speculative sampling at a temperature above 0"
    why = "temperature, top_k and top_p of draft tokens were uninitialised memory"

    def probe(self) -> bool:
        """Whether the installed function answers wrongly."""
        return not expands(import_module(_HOME).expand_batch_to_tokens)

    def apply(self) -> None:
        """Put ours in its place."""
        sampler: Any = import_module(_HOME)
        sampler.expand_batch_to_tokens = expand_batch_to_tokens


def expand_batch_to_tokens(
    x: torch.Tensor,  # [requests]
    cu_num_tokens: torch.Tensor,  # [requests], where the tokens of each one end
    num_tokens: int,
    replace_from: int = 0,
    replace_to: int = 0,
) -> torch.Tensor:  # [num_tokens]
    """Repeat each request's value for each of its tokens; `replace_from` becomes `replace_to`.

    `num_tokens` is the last of `cu_num_tokens`. The result has the type and device of `x`.
    """
    counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1))
    values = x.masked_fill(x == replace_from, replace_to)
    return values.repeat_interleave(counts, output_size=num_tokens)


def expands(expand: Expand) -> bool:
    """Whether `expand` does what its name says, for temperatures and for a top_k.

    Each question has numbers of its own, so that memory left over from another one is wrong.
    """
    return all(
        _answers(expand, torch.tensor([first, 0, first + 2, first + 3], dtype=dtype), replacement)
        for dtype, first, replacement in (
            (torch.float32, 0.375, 0),
            (torch.float32, 7.25, 1),
            (torch.int32, 23, 0),
            (torch.int32, 41, 1),
        )
    )


def _answers(expand: Expand, values: torch.Tensor, replacement: int) -> bool:
    ends = torch.tensor(_ENDS, dtype=torch.int32)
    given = values.tolist()
    right = [given[owner] or replacement for owner in _OWNERS]
    return bool(expand(values, ends, len(right), 0, replacement).tolist() == right)
