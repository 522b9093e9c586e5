"""Continuous speculation, PipeInfer's (arXiv 2407.11798), with a target that is one piece.

A draft model drafts on until it is unsure, and the target waits for no draft. PipeInfer's other
half, a target in stages on devices of their own with runs that are called off on their way, is
nothing that a model on one device has; it is measured in `evals.speculative.pipeinfer`.
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
    """How probable a drafted token must be to its model, that drafting goes on after it.

    `accept` for the first batch of tokens, `recovery` more for each that is ahead of the text, and
    `decay` less for each miss in a row. At 1 or more nothing is drafted any more.
    """

    accept: float = 0.001
    recovery: float = 0.4
    decay: float = 0.01

    def __call__(self, batches: int, misses: int) -> float:
        return max(0.0, self.accept + batches * self.recovery - misses * self.decay)


class ContinuousPacing:
    """Implements `Pacing`: the target waits for no draft, and the draft ends only by the cut-off.

    A round ends with the target's pass; what was drafted until then is proposed. Where that is
    nothing, the target reads the newest token alone. A miss ends the round's draft at once.
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
