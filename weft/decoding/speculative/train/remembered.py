"""What a frozen target makes of a text stays the same: read once, remembered for later steps.

Every text is read by itself, so that what is remembered does not depend on what stood beside it.
"""

from __future__ import annotations

from typing import Final

import torch

from weft.decoding.speculative.train.corpus import Batch
from weft.decoding.speculative.train.teacher import Teacher
from weft.decoding.train.precision import sparing

_MOST_BYTES: Final = 1 << 30


class Remembered:
    """The states that `teacher`'s head reads, in bfloat16, as many texts as have room."""

    def __init__(self, teacher: Teacher, most_bytes: int = _MOST_BYTES) -> None:
        self._teacher = teacher
        self._room = most_bytes
        self._states: dict[bytes, torch.Tensor] = {}

    def last(self, batch: Batch) -> torch.Tensor:
        """[texts, time, width] for a batch on the teacher's device; 0 after the end of a text."""
        rows = [
            self._of(tokens[there]) for tokens, there in zip(batch.tokens, batch.there, strict=True)
        ]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).float()

    def _of(self, tokens: torch.Tensor) -> torch.Tensor:
        """[tokens, width]"""
        key = tokens.cpu().numpy().tobytes()
        if key in self._states:
            return self._states[key]
        there = torch.ones(1, len(tokens), dtype=torch.bool, device=tokens.device)
        alone = Batch(tokens[None], there, there)
        with sparing(tokens.device):
            states = self._teacher.states(alone, (self._teacher.layers,))[self._teacher.layers]
        found = states[0].to(torch.bfloat16)
        self._room -= found.numel() * found.element_size()
        if self._room > 0:
            self._states[key] = found
        return found
