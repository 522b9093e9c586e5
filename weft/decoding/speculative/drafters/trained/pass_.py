"""PaSS (arXiv 2311.13581): trained look-ahead tokens after the last token draft a chain.

A round is a pass that drafts and a pass that verifies; each writes at least one token. The pass
that verifies drafts again, below the last token of the chain, so that a chain that is accepted
whole needs no pass of its own for the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from weft.core.errors import SpecError
from weft.decoding.network.network import Network
from weft.decoding.network.packing import HiddenStateWrite
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.acceptance import ExactMatch, RejectionSampling
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    DraftLength,
    FixedDraftLength,
    ProposalRequest,
    SpeculativeMethod,
    TargetOutputs,
    propose_each,
)
from weft.decoding.speculative.drafters.trained.rows import GuessPosition, rows_below
from weft.decoding.speculative.presets import Options, Preset, switch, text, whole
from weft.decoding.speculative.request import GREEDY, DraftRequest
from weft.decoding.speculative.trained_drafter import find

Below = Literal["last", "every"]
_OTHER_CHANCE = 0x9E3779B97F4A7C15
"""Drafts are drawn by other numbers than the target's tokens: else they would agree by chance."""


@dataclass(frozen=True, slots=True)
class PassOptions:
    """`below`: whether look-ahead tokens stand below the `last` node of a chain, or below `every`
    one, which costs rows and saves the passes that only draft. `drawn`: drafts are drawn from
    the look-ahead tokens' laws and tested by ratio, as in the paper; else the likeliest are taken.
    """

    below: Below = "last"
    drawn: bool = False


class PassDrafter:
    """Implements `Watching`. `ahead` [distances, width] are what the target reads as look-ahead
    tokens; drafts are drawn with `shaping`, by `seed`.
    """

    name = "pass"
    taps: tuple[int, ...] = ()

    def __init__(
        self, ahead: torch.Tensor, options: PassOptions, shaping: SamplingParams, seed: int
    ):
        self._ahead = ahead
        self._options = options
        self._shaping = shaping if options.drawn else GREEDY
        self._chance = CounterRng(seed ^ _OTHER_CHANCE)
        self._place = GuessPosition()
        self._logits = np.zeros((0, 0), np.float32)
        self._tokens = 0
        self._last: int | None = None

    def see(self, seen: TargetOutputs) -> None:
        self._place.see(seen)
        self._logits = seen.aux[list(seen.under)]

    def extend(self, tokens: Sequence[int]) -> None:
        self._place.extend(tokens)
        self._tokens += len(tokens)
        self._last = tokens[-1] if tokens else self._last

    def propose(self, most: int) -> DraftProposal:
        if most < 1 or self._last is None:
            return DraftProposal(source=self.name)
        tree = self._chain(self._logits[self._place.forced :][:most])
        self._logits = self._logits[:0]  # they were for this place
        distances = len(self._ahead)
        counts = [distances] * (1 + len(tree))
        if self._options.below == "last":
            counts[:-1] = [0] * len(tree)
        written = [row for count in counts for row in range(count)]
        first = 1 + len(tree)
        write = HiddenStateWrite(
            0, tuple(range(first, first + len(written))), lambda _: self._ahead[written]
        )
        return DraftProposal(tree, rows_below(tree, counts, self._last, [write]), self.name)

    def _chain(self, logits: NDArray[np.float32]) -> DraftTree:
        laws = [self._shaping.law(row) for row in logits]
        tokens = [self._chance.token(law, self._tokens + at) for at, law in enumerate(laws)]
        return DraftTree.chain(tokens, laws if self._options.drawn else None)


class PassMethod:
    """Implements `Method`, and `Informed`: drafts are drawn as the request's tokens are."""

    name = "pass"

    def __init__(self, ahead: torch.Tensor, options: PassOptions, most: int) -> None:
        self.acceptor = RejectionSampling() if options.drawn else ExactMatch()
        self._ahead = ahead
        self._options = options
        self._most = min(most, len(ahead))

    def lengths(self) -> DraftLength:
        return FixedDraftLength(self._most)

    def begin(self) -> PassDrafter:
        return self.begin_for(DraftRequest())

    def begin_for(self, asked: DraftRequest) -> PassDrafter:
        return PassDrafter(self._ahead, self._options, asked.shaping, asked.seed)

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        return propose_each(asks)

    def end(self, drafter: object) -> None:
        """A drafter holds no more than logits."""

    def close(self) -> None:
        """Holds nothing."""


KIND = "pass"
MOST_AHEAD = 16


def _make(network: Network, options: Options) -> SpeculativeMethod:
    like = network.embed([0])
    asked = PassOptions(_below(options), switch(options, "drawn", default=False))
    most = whole(options, "num_speculative_tokens", MOST_AHEAD, 1, MOST_AHEAD)
    artefact = find(KIND, network, text(options, "model"))
    count = artefact.whole("ahead", 1, MOST_AHEAD)
    ahead = artefact.tensor("ahead", (count, network.width)).to(like.device, like.dtype)
    return PassMethod(ahead, asked, most)


def _below(options: Options) -> Below:
    match options.get("below", "last"):
        case "last" | "every" as below:
            return below
        case other:
            raise SpecError(f"below is {other!r}", hint="last or every")


PRESET = Preset(
    "pass",
    "trained look-ahead tokens after the last token draft a chain",
    _make,
    needs="look-ahead tokens trained for the model",
    options=("num_speculative_tokens", "model", "below", "drawn"),
)
