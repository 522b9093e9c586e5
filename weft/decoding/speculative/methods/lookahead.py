"""Lookahead decoding: n-grams that the target's own passes make, with no training."""

from __future__ import annotations

from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.lookahead.drafter import FEW, Lookahead, LookaheadOptions
from weft.decoding.speculative.lengths import Always
from weft.decoding.speculative.method import Method, Single
from weft.decoding.speculative.options import switch, whole
from weft.decoding.speculative.preset import Options, Preset, Published
from weft.decoding.speculative.speculation import MOST_NODES


def _make(network: Network, options: Options) -> Method:
    usual = FEW if network.embed([0]).device.type == "cpu" else LookaheadOptions()
    sizes = LookaheadOptions(
        window=whole(options, "window", usual.window, 1, 64),
        ngram=whole(options, "ngram", usual.ngram, 2, 16),
        guesses=whole(options, "guesses", usual.guesses, 1, 64),
        text=switch(options, "text", default=usual.text),
    )
    most = min(sizes.nodes, MOST_NODES)
    nodes = whole(options, "num_speculative_tokens", most, 1, MOST_NODES)
    ends = network.habits.end_ids
    return Single("lookahead", lambda: Lookahead(sizes, ends), lambda: Always(nodes))


PRESET = Preset(
    "lookahead",
    "n-grams from a window of Jacobi iterations, read along with every pass",
    _make,
    options=("num_speculative_tokens", "window", "ngram", "guesses", "text"),
    published=Published(1.64, "Spec-Bench, Vicuna-7B greedy on an A100, W=7 N=5 G=7"),
)
