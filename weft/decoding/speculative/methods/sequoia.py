"""Sequoia: trees of a draft model, as large and as deep as this machine reads them fastest."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.decoding.speculative.artefact import Fingerprint
from weft.decoding.speculative.budget import shelf
from weft.decoding.speculative.budget.here import costs_of
from weft.decoding.speculative.drafters.model.cache import DraftCache
from weft.decoding.speculative.drafters.model.opening import opened
from weft.decoding.speculative.drafters.sequoia.method import Sequoia, Sizes
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.options import switch, text, whole
from weft.decoding.speculative.preset import Options, Preset, Published

if TYPE_CHECKING:
    from weft.decoding.network.network import Network
    from weft.decoding.speculative.budget.curve import Curve

_MOST: Final = 64
_CONTEXT: Final = 256
"""The length of a text for which the sizes are chosen."""


def _make(network: Network, options: Options) -> Method:
    few = network.embed([0]).device.type == "cpu"
    nodes = whole(options, "num_speculative_tokens", 16 if few else 48, 1, _MOST)
    depth = whole(options, "depth", 6 if few else 8, 1, 16)
    draft = opened(network, text(options, "model"), whole(options, "layers", 0, 0, network.layers))
    sizes = Sizes(nodes, depth)
    if switch(options, "measured", default=True):
        target = costs_of(network)
        sizes = Sizes(
            nodes,
            depth,
            costs_of(draft).second(_CONTEXT),
            partial(_seconds, target.second(_CONTEXT), target.curve(_CONTEXT)),
        )
    keeps = switch(options, "remember", default=True)
    return Sequoia(
        draft,
        DraftCache(draft, network.vocabulary_size),
        network.vocabulary_size,
        sizes,
        sample=switch(options, "sample", default=False),
        kept=_kept(network, draft) if keeps else None,
    )


def _kept(network: Network, draft: Network) -> Path:
    """Where the acceptance vectors of the pair are."""
    pair = repr((Fingerprint.of(network), Fingerprint.of(draft)))
    return shelf.shelf() / f"ranks-{hashlib.sha256(pair.encode()).hexdigest()[:32]}.json"


def _seconds(one: float, curve: Curve, tokens: int) -> float:
    return one * curve(tokens)


PRESET = Preset(
    "sequoia",
    "a draft model's tree, of the shape that pays most by measured acceptance and measured times",
    _make,
    options=(
        "num_speculative_tokens",
        "model",
        "layers",
        "depth",
        "measured",
        "sample",
        "remember",
    ),
    published=Published(5.08, "JF68M drafts for Llama-2-7B, greedy, C4, 128 nodes, A100; recalled"),
)
