"""PEARL (arXiv 2408.11850): draft model and target work in parallel.

A round drafts as many tokens as fill the time of the target's pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ports.clock import SystemClock
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.drafters.model.draft_cache import (
    DraftCache,
    DraftedToken,
    open_draft,
)
from weft.decoding.speculative.drafters.model.pipelined import (
    AdaptiveGamma,
    DraftWorker,
    InlineWorker,
    PipelinedMethod,
    ThreadWorker,
)
from weft.decoding.speculative.presets import Options, Preset, switch, text, whole
from weft.decoding.speculative.speculation import MOST_NODES


class PearlPacing:
    """Implements `Pacing`: both sides wait for each other at the end of a round.

    Pre-verify: nothing is proposed, the target reads the last token, and its next one is compared
    with the first one drafted meanwhile. Post-verify: after a match the rest of that draft is read
    while the next one is drafted, whose first token is compared in turn. So an accepted round
    yields as many tokens as were drafted, and a draft lasts as long as it is right.
    """

    waits = True

    def most(self, gamma: int) -> int:
        return gamma

    def goes_on(self, _ahead: int, _chosen: Sequence[DraftedToken], _misses: int) -> bool:
        return True


OPTIONS = ("model", "layers", "num_speculative_tokens", "overlap")
START = 4


def _make(network: Network, options: Options) -> SpeculativeMethod:
    longest = whole(options, "num_speculative_tokens", 8, 1, MOST_NODES)
    now = SystemClock().now
    adaptive = switch(options, "adaptive", default=True)
    start = START if adaptive else longest
    return PipelinedMethod(
        "pearl",
        draft_cache(network, options),
        worker("pearl", options),
        AdaptiveGamma(start, longest, now, adaptive=adaptive),
        PearlPacing(),
        now,
        longest,
    )


def draft_cache(network: Network, options: Options) -> DraftCache:
    """The draft model of the options `model` or `layers`, for sequences of `network`."""
    layers = whole(options, "layers", 0, 0, network.layers - 1)
    draft = open_draft(network, text(options, "model"), layers)
    return DraftCache(draft, network.vocabulary_size)


def worker(name: str, options: Options) -> DraftWorker:
    """A thread; without `overlap` the same work inline."""
    return (
        ThreadWorker(f"weft-{name}") if switch(options, "overlap", default=True) else InlineWorker()
    )


PRESETS = (
    Preset(
        "pearl",
        "a draft model that goes on while the target verifies, in a thread of its own (PEARL)",
        _make,
        needs="a draft model: model=FOLDER, else the target's first `layers`",
        options=(*OPTIONS, "adaptive"),
    ),
)
