"""PaSS (arXiv 2311.13581): trained look-ahead tokens after the last token draft a chain.

A round is a pass that drafts and a pass that verifies; each writes at least one token. The
verifying pass drafts again after the last token of the chain, so that a fully accepted chain needs
no drafting pass for the next one.
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
from weft.decoding.sampling import CounterRng
from weft.decoding.speculative.acceptance import ExactMatch, RejectionSampling
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    GREEDY,
    UNKNOWN_REQUEST,
    BaseMethod,
    DraftRequest,
    ProposalRequest,
    SpeculativeMethod,
    propose_each,
)
from weft.decoding.speculative.drafters.trained.rows import (
    EmbeddingRowDrafter,
)
from weft.decoding.speculative.presets import Options, Preset, switch, text, whole
from weft.decoding.speculative.trained_drafter import find

Below = Literal["last", "every"]
_OTHER_CHANCE = 0x9E3779B97F4A7C15
"""Drafts use other random numbers than the target's tokens: else they would correlate."""


@dataclass(frozen=True, slots=True)
class PassOptions:
    """`below`: look-ahead tokens below the `last` node of a chain, or below `every` one, which
    costs rows and saves drafting passes. `drawn`: drafts are sampled from the look-ahead tokens'
    distributions and verified by the ratio test, as in the paper; else they are the likeliest.
    """

    below: Below = "last"
    drawn: bool = False


class PassDrafter(EmbeddingRowDrafter):
    """Implements `TargetObserver`. `ahead` [distances, width] are the embeddings of look-ahead
    tokens; drafts are sampled as the `request` says.
    """

    def __init__(self, ahead: torch.Tensor, options: PassOptions, request: DraftRequest) -> None:
        super().__init__("pass", ahead)
        self._options = options
        self._sampling = request.sampling if options.drawn else GREEDY
        self._rng = CounterRng(request.seed ^ _OTHER_CHANCE)

    def draft(
        self, logits: NDArray[np.float32], forced: int, most: int
    ) -> tuple[DraftTree, Sequence[int]]:
        distributions = [self._sampling.distribution(row) for row in logits[forced:][:most]]
        tokens = [
            self._rng.token(distribution, self.tokens + at)
            for at, distribution in enumerate(distributions)
        ]
        tree = DraftTree.chain(tokens, distributions if self._options.drawn else None)
        distances = len(self.embeddings)
        every = 0 if self._options.below == "last" else distances
        return tree, [every] * len(tree) + [distances]


class PassMethod(BaseMethod):
    """Implements `SpeculativeMethod`: drafts use the sampling of the request."""

    def __init__(self, ahead: torch.Tensor, options: PassOptions, most: int) -> None:
        rule = RejectionSampling() if options.drawn else ExactMatch()
        super().__init__("pass", min(most, len(ahead)), rule)
        self._ahead = ahead
        self._options = options

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> PassDrafter:
        return PassDrafter(self._ahead, self._options, request)

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        return propose_each(asks)


KIND = "pass"
MOST_AHEAD = 16


def _make(network: Network, options: Options) -> SpeculativeMethod:
    like = network.embed([0])
    settings = PassOptions(_below(options), switch(options, "drawn", default=False))
    most = whole(options, "num_speculative_tokens", MOST_AHEAD, 1, MOST_AHEAD)
    artefact = find(KIND, network, text(options, "model"))
    count = artefact.whole("ahead", 1, MOST_AHEAD)
    ahead = artefact.tensor("ahead", (count, network.width)).to(like.device, like.dtype)
    return PassMethod(ahead, settings, most)


def _below(options: Options) -> Below:
    match options.get("below", "last"):
        case "last" | "every" as below:
            return below
        case other:
            raise SpecError(f"below is {other!r}", hint="last or every")


PRESETS = (
    Preset(
        "pass",
        "trained look-ahead tokens after the last token draft a chain",
        _make,
        needs="look-ahead tokens trained for the model",
        options=("num_speculative_tokens", "model", "below", "drawn"),
    ),
)
