"""Continuous speculation of PipeInfer (arXiv 2407.11798), with the target on one device.

A draft model drafts on until it is unsure, and the target waits for no draft. PipeInfer's other
half, a target in pipeline stages with runs that are cancelled early, is measured in
`evals.speculative.pipeinfer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.core.ports.clock import SystemClock
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.drafters.model.draft_cache import DraftedToken
from weft.decoding.speculative.drafters.model.pearl import OPTIONS, draft_cache, worker
from weft.decoding.speculative.drafters.model.pipelined import AdaptiveGamma, PipelinedMethod
from weft.decoding.speculative.presets import Options, Preset, share, whole
from weft.decoding.speculative.speculation import MOST_NODES


@dataclass(frozen=True, slots=True)
class ConfidenceCutoff:
    """The probability of a drafted token from which drafting continues.

    `accept` for the first batch of tokens, `recovery` more for each batch ahead of the text, and
    `decay` less for each miss in a row. At 1 or more drafting stops.
    """

    accept: float = 0.001
    recovery: float = 0.4
    decay: float = 0.01

    def __call__(self, batches: int, misses: int) -> float:
        return max(0.0, self.accept + batches * self.recovery - misses * self.decay)


class ContinuousPacing:
    """Implements `Pacing`: the target waits for no draft, and drafts end only by the cut-off.

    A round ends with the target's pass; the tokens drafted until then are proposed. If there are
    none, the target reads the newest token alone. A miss ends the round's draft at once.
    """

    waits = False

    def __init__(self, cutoff: ConfidenceCutoff, batch: int, longest: int) -> None:
        self._cutoff = cutoff
        self._batch = batch
        self._longest = longest

    def most(self, _gamma: int) -> int:
        return self._longest

    def goes_on(self, ahead: int, chosen: Sequence[DraftedToken], misses: int) -> bool:
        least = self._cutoff((ahead + len(chosen)) // self._batch, misses)
        return least < 1.0 and (not chosen or chosen[-1].confidence >= least)


def _make(network: Network, options: Options) -> SpeculativeMethod:
    longest = whole(options, "num_speculative_tokens", 16, 1, MOST_NODES)
    now = SystemClock().now
    cutoff = ConfidenceCutoff(
        share(options, "accept", 0.001),
        share(options, "recovery", 0.4),
        share(options, "decay", 0.01),
    )
    return PipelinedMethod(
        "continuous",
        draft_cache(network, options),
        worker("continuous", options),
        AdaptiveGamma(longest, longest, now, adaptive=False),
        ContinuousPacing(cutoff, whole(options, "batch", 4, 1, MOST_NODES), longest),
        now,
        longest,
    )


PRESETS = (
    Preset(
        "continuous",
        "a draft model that never stops, and a target that never waits for it: PipeInfer's"
        " drafting without its stages",
        _make,
        needs="a draft model: model=FOLDER, else the target's first `layers`",
        options=(*OPTIONS, "batch", "accept", "recovery", "decay"),
    ),
)
