"""Continuous speculation, PipeInfer's (arXiv 2407.11798), with a target that is one piece.

A draft model drafts on until it is unsure, and the target waits for no draft. PipeInfer's other
half, a target in stages on devices of their own with runs that are called off on their way, is
nothing that a model on one device has; it is measured in `evals.speculative.pipeinfer`.
"""

from __future__ import annotations

from weft.core.ports.clock import SystemClock
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.overlapped.continuous import Continuous, Cutoff
from weft.decoding.speculative.drafters.overlapped.gamma import Gamma
from weft.decoding.speculative.drafters.overlapped.method import Overlapped
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.methods.pearl import OPTIONS, draft_cache, worker
from weft.decoding.speculative.options import share, whole
from weft.decoding.speculative.preset import Options, Preset
from weft.decoding.speculative.speculation import MOST_NODES


def _make(network: Network, options: Options) -> Method:
    longest = whole(options, "num_speculative_tokens", 16, 1, MOST_NODES)
    now = SystemClock().now
    cutoff = Cutoff(
        share(options, "accept", 0.001),
        share(options, "recovery", 0.4),
        share(options, "decay", 0.01),
    )
    return Overlapped(
        "continuous",
        draft_cache(network, options),
        worker("continuous", options),
        Gamma(longest, longest, now, adaptive=False),
        Continuous(cutoff, whole(options, "batch", 4, 1, MOST_NODES), longest),
        now,
        longest,
    )


PRESET = Preset(
    "continuous",
    "a draft model that never stops, and a target that never waits for it: PipeInfer's drafting "
    "without its stages",
    _make,
    needs="a draft model: model=FOLDER, else the target's first `layers`",
    options=(*OPTIONS, "batch", "accept", "recovery", "decay"),
)
