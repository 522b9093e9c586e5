"""Trained placeholders as a method: as published, or as drafts that are verified."""

from __future__ import annotations

from weft.decoding.network.network import Network
from weft.decoding.speculative.accept.lossy import LossyAcceptor
from weft.decoding.speculative.artefact import Artefact, find
from weft.decoding.speculative.drafters.lexical_units.drafter import (
    LexicalUnitOptions,
    LexicalUnits,
)
from weft.decoding.speculative.heads.lexical import Placeholders
from weft.decoding.speculative.lengths import Always
from weft.decoding.speculative.method import Method, Single
from weft.decoding.speculative.options import share, text, whole
from weft.decoding.speculative.preset import Options
from weft.decoding.speculative.walk import Acceptor

KIND = "lexical_units"
OPTIONS = ("num_speculative_tokens", "model", "beta")
_MOST_ROWS = 16


def units(
    name: str,
    network: Network,
    options: Options,
    usual: LexicalUnitOptions,
    acceptor: Acceptor | LossyAcceptor,
) -> Method:
    """The method of that name. Raises: `SpecError` for options, `CapabilityError` for weights."""
    settings = LexicalUnitOptions(share(options, "beta", usual.beta), usual.anywhere)
    placeholders = loaded(find(KIND, network, text(options, "model")), network)
    most = whole(options, "num_speculative_tokens", placeholders.count, 1, placeholders.count)
    pad = 0  # its embedding is written over
    return Single(
        name,
        lambda: LexicalUnits(name, placeholders, pad, settings),
        lambda: Always(most),
        acceptor,
    )


def loaded(artefact: Artefact, network: Network) -> Placeholders:
    """The placeholders of `artefact`. Raises: `CapabilityError` for ones that are broken."""
    count = artefact.whole("placeholders", 1, _MOST_ROWS)
    rank = artefact.whole("rank", 1, network.width)
    first = artefact.whole("first_layer", 0, network.layers - 1)
    like = network.embed([0])
    layers = tuple(range(first, network.layers))
    placeholders = Placeholders(count, layers, rank, like[0])
    weights = {
        name: artefact.tensor(name, tuple(value.shape))
        for name, value in placeholders.state_dict().items()
    }
    placeholders.load_state_dict(weights)
    placeholders.to(like.device, like.dtype).requires_grad_(requires_grad=False)
    return placeholders
