"""Two drafters that cost nothing: counts of suffixes where they are sure, else a long copy.

After the hybrid of SuffixDecoding (arXiv 2411.04975): the counts say how many of their tokens they
expect to be right; where another drafter is expected to do better, that one drafts.
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
    """Implements `Drafter`. What the copy would have got right is watched at every step.

    `memory`: how many steps the running mean of that remembers.
    """

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
        """How many tokens of a copy were right lately."""
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
    """How many tokens of the copy came, as far as the step went."""
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
