"""Medusa: trained heads guess several tokens from one state; a sparse tree of their guesses."""

from __future__ import annotations

from itertools import accumulate

from weft.decoding.network.network import Network
from weft.decoding.speculative.accept.lossy import LossyAcceptor
from weft.decoding.speculative.accept.match import Match
from weft.decoding.speculative.artefact import Artefact, find
from weft.decoding.speculative.budget.fitting import pays_most
from weft.decoding.speculative.budget.here import costs_of
from weft.decoding.speculative.drafters.medusa import MedusaMethod
from weft.decoding.speculative.heads.medusa import MedusaHeads
from weft.decoding.speculative.heads.rank_tree import best_ranks
from weft.decoding.speculative.heads.vocabulary_rows import VocabularyRows
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.options import switch, text, whole
from weft.decoding.speculative.preset import Options, Preset, Published
from weft.decoding.speculative.speculation import MOST_NODES
from weft.decoding.speculative.walk import Acceptor

KIND = "medusa"
MOST_HEADS = 16
_FEW, _MANY = 16, 63
"""The most nodes on a processor, and on an accelerator, as many as Medusa's own trees have."""
_CONTEXT = 256
"""The length of a text for which the size is chosen."""


def make_medusa(
    name: str, network: Network, options: Options, acceptor: Acceptor | LossyAcceptor
) -> MedusaMethod:
    """The method with the heads trained for a network. Raises: `CapabilityError`, `SpecError`."""
    usual = _FEW if network.embed([0]).device.type == "cpu" else _MANY
    nodes = whole(options, "num_speculative_tokens", usual, 1, MOST_NODES)
    measured = switch(options, "measured", default="num_speculative_tokens" not in options)
    artefact = find(KIND, network, text(options, "model"))
    count = artefact.whole("heads", 1, MOST_HEADS)
    tree = best_ranks(artefact.table("accuracy", count), nodes)
    if measured and len(tree):
        running = accumulate(tree.chances, initial=1.0)
        expected = {size: tokens for size, tokens in enumerate(running) if size}
        tree = tree.first(pays_most(expected, costs_of(network).curve(_CONTEXT)))
    rows = VocabularyRows(network, artefact.ids("tokens", network.vocabulary_size))
    return MedusaMethod(
        name, loaded(artefact, count, network), rows, tree, network.layers, acceptor
    )


def loaded(artefact: Artefact, count: int, network: Network) -> MedusaHeads:
    """The trained heads of `artefact`. Raises: `CapabilityError` for what is broken."""
    heads = MedusaHeads(count, network.width)
    weights = {
        name: artefact.tensor(name, tuple(value.shape))
        for name, value in heads.state_dict().items()
    }
    heads.load_state_dict(weights)
    heads.to(network.embed([0]).device).requires_grad_(requires_grad=False)
    return heads


def _make(network: Network, options: Options) -> Method:
    return make_medusa("medusa", network, options, Match())


PRESET = Preset(
    "medusa",
    "trained heads guess several tokens from one state, in a sparse tree",
    _make,
    needs="heads trained for the model",
    options=("num_speculative_tokens", "model", "measured"),
    published=Published(2.31, "Medusa-1, Spec-Bench, Vicuna-7B greedy on an A100"),
)
