"""The drafter's network over many sequences: what was committed is kept, then blocks are filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.eagle.memory import Memory
from weft.decoding.speculative.heads.dflash import DFlash
from weft.decoding.speculative.heads.vocabulary_rows import VocabularyRows


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """One sequence to look ahead of: its last token, and what was read before it.

    memories  of each layer, the rows of what was read earlier; they get those of `features`
    features  [rows, taps * width]
    """

    memories: Sequence[Memory]
    features: torch.Tensor
    last: int


@dataclass(slots=True, eq=False)
class DFlashModel:
    """Weights for all sequences of `target`; guesses none but `tokens` [draft vocabulary].

    `taps` are the target's layers that are looked at; `forwards` counts passes of the network.
    """

    net: DFlash
    taps: tuple[int, ...]
    tokens: torch.Tensor
    target: Network
    forwards: int = 0
    _head: VocabularyRows = field(init=False)

    def __post_init__(self) -> None:
        like = self.target.embed([0])
        self.net.to(like.device, like.dtype).eval().requires_grad_(requires_grad=False)
        self._head = VocabularyRows(self.target, self.tokens)

    def memories(self) -> tuple[Memory, ...]:
        """Empty ones, for a sequence."""
        return tuple(Memory() for _ in self.net.layers)

    def vocabulary(self) -> NDArray[np.int64]:
        """The tokens that it guesses among, ascending."""
        ids: NDArray[np.int64] = self._head.ids.cpu().numpy()
        return ids

    def look(self, asked: Sequence[Ahead]) -> list[NDArray[np.float32]]:
        """Logits [block - 1, draft vocabulary] for the slots after the last token of each, in one
        pass.
        """
        with torch.inference_mode():
            self._keep(asked)
            self.forwards += 1
            block = self.net.shape.block
            bases = [one.memories[0].length for one in asked]
            steps = torch.arange(block)
            positions = torch.cat([base + steps for base in bases]).to(self._head.ids.device)

            def attend(
                layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
            ) -> torch.Tensor:
                split = zip(*(of.split(block, dim=1) for of in (query, key, value)), strict=True)
                found = [
                    one.memories[layer].attend(q, k, v)
                    for one, (q, k, v) in zip(asked, split, strict=True)
                ]
                return torch.cat(found, dim=1)

            last = self.target.embed([one.last for one in asked])
            ready = self.net(last, self.net.turns(positions), attend)
            logits = self._head(ready).float().cpu().numpy()
            for one, base in zip(asked, bases, strict=True):
                for memory in one.memories:
                    memory.crop(base)
            return list(logits)

    def _keep(self, asked: Sequence[Ahead]) -> None:
        """The features of all sequences become keys and values of all layers."""
        sizes = [len(one.features) for one in asked]
        starts = [one.memories[0].length for one in asked]
        places = [torch.arange(at, at + size) for at, size in zip(starts, sizes, strict=True)]
        turns = self.net.turns(torch.cat(places).to(self._head.ids.device))
        kept = self.net.remembered(torch.cat([one.features for one in asked]), turns)
        for layer, (keys, values) in enumerate(kept):
            parts = zip(keys.split(sizes, dim=1), values.split(sizes, dim=1), strict=True)
            for one, (key, value) in zip(asked, parts, strict=True):
                one.memories[layer].append(key, value)
