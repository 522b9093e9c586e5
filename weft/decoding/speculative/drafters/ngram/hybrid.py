"""Two free drafters: suffix counts where they are sure, else a long copy.

After the hybrid of SuffixDecoding (arXiv 2411.04975): the counts give the expected number of right
tokens; where the other drafter is expected to do better, it drafts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.drafters.ngram.lookup import LookupDrafter
from weft.decoding.speculative.drafters.ngram.suffix import (
    RecordingSuffixDrafter,
    SharedTexts,
    SuffixMethod,
    SuffixOptions,
    shared_texts,
)
from weft.decoding.speculative.presets import Options, Preset, whole
from weft.decoding.speculative.speculation import MOST_NODES

if TYPE_CHECKING:
    from weft.decoding.network.network import Network


class HybridDrafter(RecordingSuffixDrafter):
    """Implements `Drafter`; tracks the accuracy of copies over about `memory` steps."""

    name = "hybrid"

    def __init__(
        self,
        options: SuffixOptions,
        shared: SharedTexts | None,
        lookup: LookupDrafter,
        memory: float = 8.0,
    ) -> None:
        super().__init__(options, shared)
        self._lookup = lookup
        self._rate = 1.0 / memory
        self._hope = 1.0
        """Mean number of right tokens of recent copies."""
        self._copy: tuple[int, ...] = ()

    def extend(self, tokens: Sequence[int]) -> None:
        if self._copy:
            right = _alike(self._copy, tokens)
            self._hope += self._rate * (right - self._hope)
            self._copy = ()
        super().extend(tokens)
        self._lookup.extend(tokens)

    def propose(self, most: int) -> DraftTree:
        copy, guess = self._lookup.propose(most), self.guess(most)
        self._copy = copy.tokens
        return guess.tree if guess.expected >= min(self._hope, len(copy)) else copy


def _alike(copy: Sequence[int], tokens: Sequence[int]) -> int:
    """The length of the common prefix."""
    alike = 0
    for drafted, came in zip(copy, tokens, strict=False):
        if drafted != came:
            break
        alike += 1
    return alike


def _make(network: Network, options: Options) -> SpeculativeMethod:  # noqa: ARG001 - tokens are all it needs
    most = whole(options, "num_speculative_tokens", 8, 1, MOST_NODES)
    sizes = SuffixOptions(depth=whole(options, "depth", 24, 2, 64))
    shared = shared_texts(options)
    return SuffixMethod(
        "hybrid", lambda: HybridDrafter(sizes, shared, LookupDrafter()), most, shared
    )


PRESETS = (
    Preset(
        "hybrid",
        "suffix where its counts are sure, else lookup",
        _make,
        options=("num_speculative_tokens", "depth", "shared", "nodes"),
    ),
)
