"""Parallel prompt decoding: trained prompt tokens, and a sparse tree for each state."""

from __future__ import annotations

from weft.decoding.network.network import Network
from weft.decoding.speculative.artefact import find
from weft.decoding.speculative.drafters.prompt_tokens import PromptTokens
from weft.decoding.speculative.heads.prompt_tree import best_trees
from weft.decoding.speculative.lengths import Always
from weft.decoding.speculative.method import Method, Single
from weft.decoding.speculative.options import text, whole
from weft.decoding.speculative.preset import Options, Preset

KIND = "ppd"
MOST_PROMPTS = 8
_MOST_ROWS = 128
_FEW, _MANY = 12, 60
"""Rows on a processor, and on an accelerator, where PPD's trees for a 13B model have as many."""


def _make(network: Network, options: Options) -> Method:
    like = network.embed([0])
    usual = _FEW if like.device.type == "cpu" else _MANY
    budget = whole(options, "rows", usual, 1, _MOST_ROWS)
    artefact = find(KIND, network, text(options, "model"))
    count = artefact.whole("prompts", 1, MOST_PROMPTS)
    prompts = artefact.tensor("prompts", (count, network.width)).to(like.device, like.dtype)
    trees = best_trees(artefact.table("accuracy", count), budget)
    largest = max(len(state.tree) for state in trees.states)
    most = whole(options, "num_speculative_tokens", max(largest, 1), 1, _MOST_ROWS)
    return Single("ppd", lambda: PromptTokens(prompts, trees), lambda: Always(most))


PRESET = Preset(
    "ppd",
    "trained prompt tokens below every candidate say the next candidates, in trees of a budget",
    _make,
    needs="prompt tokens trained for the model",
    options=("num_speculative_tokens", "rows", "model"),
)
