"""Speculative decoding as it was first: a small model of its own drafts a chain."""

from __future__ import annotations

from weft.core.errors import SpecError
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.model.cache import DraftCache
from weft.decoding.speculative.drafters.model.drafter import ModelDrafts
from weft.decoding.speculative.drafters.model.opening import draft_model
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.options import share, switch, text, whole
from weft.decoding.speculative.preset import Options, Preset, Published
from weft.decoding.speculative.speculation import MOST_NODES

OPTIONS = ("num_speculative_tokens", "sample", "confidence")
CONFIDENCE = 0.4
"""That of transformers' assisted generation."""


def _make(network: Network, options: Options) -> Method:
    folder = text(options, "model")
    if folder is None:
        raise SpecError("draft_model needs a draft model", hint="model=FOLDER, or use self_draft")
    return chains("draft_model", draft_model(network, folder), network, options)


def chains(name: str, draft: Network, network: Network, options: Options) -> Method:
    """Chains of `draft` for `network`, as `OPTIONS` say."""
    return ModelDrafts(
        name,
        DraftCache(draft, network.vocabulary_size),
        network.vocabulary_size,
        whole(options, "num_speculative_tokens", 5, 1, MOST_NODES),
        sample=switch(options, "sample", default=False),
        confidence=share(options, "confidence", CONFIDENCE),
    )


PRESET = Preset(
    "draft_model",
    "a small model with the same tokenizer drafts a chain (Leviathan et al., Chen et al.)",
    _make,
    needs="a draft model: model=FOLDER",
    options=("model", *OPTIONS),
    published=Published(2.28, "Spec-Bench, Vicuna-7B with a 68M draft, greedy, RTX 3090"),
)
