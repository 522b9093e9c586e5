"""Hidden states that are made rather than computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Hidden states that are made rather than computed, as they enter `layer` (0: the embeddings).

    `make` gets what enters the layer for all tokens of the span, [tokens, width], and returns what
    shall enter it for the tokens `rows`: [rows, width].
    """

    layer: int
    rows: tuple[int, ...]
    make: Callable[[torch.Tensor], torch.Tensor]
