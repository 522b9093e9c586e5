"""Parallel prompt decoding: trained prompt tokens, and a sparse tree for each state."""

from __future__ import annotations

from weft.decoding.network.network import Network
from weft.decoding.speculative.artefact import find
from weft.decoding.speculative.budget.fitting import pays_most
from weft.decoding.speculative.budget.here import costs_of
from weft.decoding.speculative.drafters.prompt_tokens import PromptTokens
from weft.decoding.speculative.heads.prompt_tree import best_trees
from weft.decoding.speculative.lengths import Always
from weft.decoding.speculative.method import Method, Single
from weft.decoding.speculative.options import switch, text, whole
from weft.decoding.speculative.preset import Options, Preset

KIND = "ppd"
MOST_PROMPTS = 8
_MOST_ROWS = 128
_SIZES = (3, 4, 6, 8, 12, 16, 24, 32, 48)
_CONTEXT = 256
"""The length of a text for which the size is chosen."""
_FEW, _MANY = 16, 60
"""The most rows on a processor, and on an accelerator, as PPD has them for a 13B model."""


def _make(network: Network, options: Options) -> Method:
    like = network.embed([0])
    usual = _FEW if like.device.type == "cpu" else _MANY
    budget = whole(options, "rows", usual, 1, _MOST_ROWS)
    measured = switch(options, "measured", default="rows" not in options)
    artefact = find(KIND, network, text(options, "model"))
    count = artefact.whole("prompts", 1, MOST_PROMPTS)
    prompts = artefact.tensor("prompts", (count, network.width)).to(like.device, like.dtype)
    accuracy = artefact.table("accuracy", count)
    if measured:
        sizes = {rows for rows in _SIZES if rows < budget} | {budget}
        expected = {rows: best_trees(accuracy, rows).expected for rows in sizes}
        budget = pays_most(expected, costs_of(network).curve(_CONTEXT))
    trees = best_trees(accuracy, budget)
    largest = max(len(state.tree) for state in trees.states)
    most = whole(options, "num_speculative_tokens", max(largest, 1), 1, _MOST_ROWS)
    return Single("ppd", lambda: PromptTokens(prompts, trees), lambda: Always(most))


PRESET = Preset(
    "ppd",
    "trained prompt tokens below every candidate say the next candidates, in trees of a budget",
    _make,
    needs="prompt tokens trained for the model",
    options=("num_speculative_tokens", "rows", "model", "measured"),
)
