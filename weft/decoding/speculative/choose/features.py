"""What tells requests apart before anything is written: length, repetition, temperature, node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_LENGTHS: Final = (64, 256, 1024, 4096)
_OVERLAPS: Final = (0.1, 0.3)
_WARM: Final = 0.5
_NGRAM: Final = 3
_LONGEST_LABEL: Final = 100


@dataclass(frozen=True, slots=True)
class Features:
    """`overlap`: see `overlap`. `label`: the node of the program; empty when nobody said."""

    prompt_tokens: int
    overlap: float
    temperature: float
    label: str = ""

    @property
    def scopes(self) -> tuple[str, ...]:
        """The groups of requests that this one belongs to, from all to those most like it."""
        size = sum(self.prompt_tokens >= edge for edge in _LENGTHS)
        repeats = sum(self.overlap >= edge for edge in _OVERLAPS)
        heat = (self.temperature > 0.0) + (self.temperature > _WARM)
        kind = ("", f"kind {size}{repeats}{heat}")
        return (*kind, f"node {self.label[:_LONGEST_LABEL]}") if self.label else kind


def overlap(tokens: Sequence[int]) -> float:
    """The share of a prompt's runs of three tokens that occur in it before; 0 for a short one."""
    runs = list(zip(*(tokens[shift:] for shift in range(_NGRAM)), strict=False))
    return 1.0 - len(set(runs)) / len(runs) if runs else 0.0
