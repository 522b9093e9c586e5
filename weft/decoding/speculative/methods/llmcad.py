"""LLMCad (arXiv 2309.04255): a small model goes on until it is unsure, then the target verifies."""

from __future__ import annotations

from weft.core.ports.clock import SystemClock
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.cascade.method import Cascade
from weft.decoding.speculative.drafters.overlapped.gamma import Gamma
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.methods.pearl import OPTIONS, START, draft_cache, worker
from weft.decoding.speculative.options import share, switch, whole
from weft.decoding.speculative.preset import Options, Preset
from weft.decoding.speculative.speculation import MOST_NODES


def _make(network: Network, options: Options) -> Method:
    longest = whole(options, "num_speculative_tokens", 8, 1, MOST_NODES)
    now = SystemClock().now
    return Cascade(
        "llmcad",
        draft_cache(network, options),
        worker("llmcad", options),
        Gamma(START, longest, now, adaptive=switch(options, "adaptive", default=True)),
        now,
        longest,
        width=whole(options, "width", 2, 1, 16),
        threshold=share(options, "threshold", 0.01),
    )


PRESET = Preset(
    "llmcad",
    "a small model grows a tree until it is unsure, and drafts on while the target verifies",
    _make,
    needs="a draft model: model=FOLDER, else the target's first `layers`",
    options=(*OPTIONS, "adaptive", "width", "threshold"),
)
