"""The drafter's layer over many sequences: what was committed is read, then a tree is grown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.eagle.line import Line, Rows
from weft.decoding.speculative.heads.eagle import EagleLayer
from weft.decoding.speculative.heads.vocabulary_rows import VocabularyRows
from weft.decoding.speculative.tree import DraftTree

PIECE: Final = 256
"""Rows of a sequence in one pass at most: a long prompt squared would not fit."""


@dataclass(frozen=True, slots=True)
class EagleOptions:
    """Trees of at most `depth` levels, of which the `width` likeliest nodes grow; a width of one
    is a chain. `nodes`: drafted tokens at most. The defaults are the authors' for a large
    accelerator.

    Raises: `ValueError` for sizes below one.
    """

    depth: int = 7
    width: int = 10
    nodes: int = 59

    def __post_init__(self) -> None:
        if min(self.depth, self.width, self.nodes) < 1:
            raise ValueError(f"no tree is of {self}")


class EagleModel:
    """Weights for all sequences of `target`; it drafts none but `tokens` [draft vocabulary].

    `taps` are the target's layers that are looked at; `forwards` counts passes of the layer.
    """

    def __init__(
        self,
        layer: EagleLayer,
        taps: tuple[int, ...],
        tokens: torch.Tensor,
        target: Network,
        options: EagleOptions,
    ) -> None:
        like = target.embed([0])
        self.forwards = 0
        self.taps = taps
        self.options = options
        self._layer = layer.to(like.device, like.dtype).eval().requires_grad_(False)
        self._head = VocabularyRows(target, tokens)
        self._target = target

    def draft(
        self, lines: Sequence[Line], unread: Sequence[tuple[Sequence[int], torch.Tensor]]
    ) -> list[DraftTree]:
        """Commit what is `unread` of each line, tokens with the features before them, [rows, taps *
        width]; then grow a tree on each.
        """
        with torch.inference_mode():
            self._commit(lines, unread)
            for level in range(self.options.depth):
                growing = [line for line in lines if line.most > level]
                if level:
                    read = self._read([line.level() for line in growing])
                    for line, states in zip(growing, read, strict=True):
                        line.states = states
                self._grow(growing)
        for line in lines:
            line.forget()
        return [line.growth.tree(line.most) for line in lines]

    def _commit(
        self, lines: Sequence[Line], unread: Sequence[tuple[Sequence[int], torch.Tensor]]
    ) -> None:
        longest = max((len(tokens) for tokens, _ in unread), default=0)
        for first in range(0, longest, PIECE):
            piece = slice(first, first + PIECE)
            reading = [
                (line, line.committed(tokens[piece], self._layer.fuse(features[piece])))
                for line, (tokens, features) in zip(lines, unread, strict=True)
                if len(tokens) > first
            ]
            read = self._read([rows for _, rows in reading])
            for (line, _), states in zip(reading, read, strict=True):
                line.states = states[-1:]

    def _read(self, parts: Sequence[Rows]) -> Sequence[torch.Tensor]:
        """One pass over the rows of several sequences: the states of each."""
        if not parts:
            return []
        self.forwards += 1
        sizes = [len(part.tokens) for part in parts]

        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            split = zip(*(of.split(sizes, dim=1) for of in (query, key, value)), strict=True)
            found = [
                part.memory.attend(q, k, v, part.sees)
                for part, (q, k, v) in zip(parts, split, strict=True)
            ]
            return torch.cat(found, dim=1)

        tokens = self._target.embed([token for part in parts for token in part.tokens])
        states = torch.cat([part.states for part in parts])
        turns = self._layer.turns(torch.cat([part.positions for part in parts]))
        made: torch.Tensor = self._layer(tokens, states, turns, attend)
        split: Sequence[torch.Tensor] = made.split(sizes)
        return split

    def _grow(self, lines: Sequence[Line]) -> None:
        if not lines:
            return
        sizes = [len(line.states) for line in lines]
        ready = self._layer.ready(torch.cat([line.states for line in lines]))
        logs = self._head(ready).float().log_softmax(dim=-1)
        best, at = logs.topk(min(self.options.width, logs.shape[1]), dim=-1)
        scores = best.double().cpu().numpy()
        tokens = self._head.ids[at].cpu().numpy()
        ends = np.cumsum(sizes)[:-1]
        parts = zip(lines, np.split(tokens, ends), np.split(scores, ends), strict=True)
        for line, found, likely in parts:
            line.growth.grow(found, likely)
