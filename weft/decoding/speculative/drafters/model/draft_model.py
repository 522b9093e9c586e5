"""Vanilla speculative decoding: a draft model writes chains, one pass per depth for all sequences.

Leviathan et al. (arXiv 2211.17192), Chen et al. (arXiv 2302.01318).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import SpecError
from weft.decoding.network.network import Network
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.acceptance import RejectionSampling
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    Drafter,
    DraftRequest,
    MethodDrafter,
    ProposalRequest,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.model.draft_cache import (
    DraftCache,
    DraftCacheMethod,
    DraftedToken,
    DraftSequence,
    load_draft_model,
    own_layers,
)
from weft.decoding.speculative.presets import (
    Options,
    Preset,
    PublishedSpeed,
    share,
    switch,
    text,
    whole,
)
from weft.decoding.speculative.speculation import MOST_NODES


class TokenChoice(Protocol):
    """Chooses draft tokens for one sequence."""

    def choose(self, logits: NDArray[np.float32], position: int, stamp: int) -> DraftedToken:
        """A token from logits [vocabulary] at a position of the sequence."""


class GreedyChoice:
    """Implements `TokenChoice`: the largest logit, the lowest id of equals. No sampling."""

    def choose(self, logits: NDArray[np.float32], _position: int, stamp: int) -> DraftedToken:
        weights = np.exp(logits.astype(np.float64) - logits.max())
        token = int(weights.argmax())
        total = weights.sum()
        confidence = 1.0 / total
        weights[token] = -1.0
        second = int(weights.argmax())
        return DraftedToken(
            token,
            float(confidence),
            None,
            stamp,
            (second, max(0.0, float(weights[second] / total))),
        )


class SampledChoice:
    """Implements `TokenChoice`: a sample, with the distribution that the ratio test needs.

    Distributions have the target's size `vocabulary`. The random numbers derive from the request's
    `seed` and differ from those of the target, as the test requires.
    """

    def __init__(self, sampling: SamplingParams, seed: int, vocabulary: int) -> None:
        self._sampling = sampling
        own = blake2b(b"draft %d" % seed, digest_size=8).digest()
        self._rng = CounterRng(int.from_bytes(own, "little"))
        self._vocabulary = vocabulary

    def choose(self, logits: NDArray[np.float32], position: int, stamp: int) -> DraftedToken:
        distribution = np.zeros(self._vocabulary)
        distribution[: len(logits)] = self._sampling.distribution(logits)
        token = self._rng.token(distribution, position)
        return DraftedToken(token, float(distribution[token]), distribution, stamp)


@dataclass(slots=True, eq=False)
class DraftChain:
    """A chain of at most `most` tokens after the text of a sequence and the tokens `ahead` of it.

    `goes_on` decides before every further token, from those chosen so far. A chosen token stays:
    rejecting one by its value would change the distribution of samples.
    """

    line: DraftSequence
    choice: TokenChoice
    most: int
    ahead: tuple[int, ...] = ()
    goes_on: Callable[[Sequence[DraftedToken]], bool] = lambda _chosen: True
    chosen: list[DraftedToken] = field(default_factory=list)

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens after the text."""
        return (*self.ahead, *(chosen.token for chosen in self.chosen))

    @property
    def tree(self) -> DraftTree:
        """The chosen tokens as a draft, with the distributions of samples."""
        tokens = [chosen.token for chosen in self.chosen]
        distributions = [
            chosen.distribution for chosen in self.chosen if chosen.distribution is not None
        ]
        return DraftTree.chain(tokens, distributions or None)


def grow_chains(cache: DraftCache, chains: Sequence[DraftChain]) -> None:
    """Draft until all chains stop: as many passes as the longest of them has tokens."""
    while growing := [chain for chain in chains if _may_grow(cache, chain)]:
        logits = cache.read([(chain.line, chain.tokens) for chain in growing])
        for chain, row in zip(growing, logits, strict=True):
            position = len(chain.line) + len(chain.tokens)
            chain.chosen.append(chain.choice.choose(row, position, cache.stamp))


def _may_grow(cache: DraftCache, chain: DraftChain) -> bool:
    room = len(chain.chosen) < chain.most and cache.fits(chain.line, len(chain.tokens))
    return room and chain.goes_on(chain.chosen)


@dataclass(frozen=True, slots=True)
class ConfidenceStop:
    """Stops below a probability of `least`, as in transformers' assisted generation."""

    least: float

    def __call__(self, chosen: Sequence[DraftedToken]) -> bool:
        return not chosen or chosen[-1].confidence >= self.least


class ModelDrafter(MethodDrafter):
    """Implements `Drafter`: one sequence of `DraftModelMethod`."""

    def __init__(self, method: DraftModelMethod, line: DraftSequence, choice: TokenChoice) -> None:
        super().__init__(method)
        self.line = line
        self.choice = choice
        self.drafted: Sequence[DraftedToken] = ()
        """Drafted since the last `extend`."""
        self._discard = method.discard

    def extend(self, tokens: Sequence[int]) -> None:
        self.line.extend(tokens)
        accepted = 0
        for chosen, token in zip(self.drafted, tokens, strict=False):
            if chosen.token != token:
                break
            accepted += 1
        self._discard(self.drafted[accepted:])
        self.drafted = ()


class DraftModelMethod(DraftCacheMethod):
    """Implements `SpeculativeMethod` (vanilla speculative decoding): chains of up to `most` tokens.

    Drafts are the likeliest tokens, verified by `ExactMatch`; or, with `sample`, samples at the
    request's temperature with their distributions, verified by `RejectionSampling`. A draft stops
    after a token with a probability below `confidence`. `vocabulary` is the target's.
    """

    def __init__(
        self,
        name: str,
        cache: DraftCache,
        vocabulary: int,
        most: int,
        *,
        sample: bool = False,
        confidence: float = 0.0,
    ) -> None:
        super().__init__(name, cache, most, RejectionSampling() if sample else None)
        self._vocabulary = vocabulary
        self._sample = sample
        self._stop = ConfidenceStop(confidence)

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> Drafter:
        """The drafter of a new sequence; its samples depend on the request only."""
        choice: TokenChoice = GreedyChoice()
        if self._sample:
            choice = SampledChoice(request.sampling, request.seed, self._vocabulary)
        return ModelDrafter(self, self.cache.open(), choice)

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        own = [(drafter, most) for drafter, most in asks if isinstance(drafter, ModelDrafter)]
        chains = [
            DraftChain(drafter.line, drafter.choice, most, goes_on=self._stop)
            for drafter, most in own
        ]
        grow_chains(self.cache, chains)
        for (drafter, _), chain in zip(own, chains, strict=True):
            drafter.drafted = chain.chosen
        return [DraftProposal(chain.tree, source=self.name) for chain in chains]

    def end(self, drafter: Drafter) -> None:
        if isinstance(drafter, ModelDrafter):
            self.cache.close(drafter.line)


OPTIONS = ("num_speculative_tokens", "sample", "confidence")
CONFIDENCE = 0.4
"""The default of transformers' assisted generation."""


def _draft_model(network: Network, options: Options) -> SpeculativeMethod:
    folder = text(options, "model")
    if folder is None:
        raise SpecError("draft_model needs a draft model", hint="model=FOLDER, or use self_draft")
    return _chains("draft_model", load_draft_model(network, folder), network, options)


def _self_draft(network: Network, options: Options) -> SpeculativeMethod:
    layers = whole(options, "layers", 0, 0, network.layers - 1)
    return _chains("self_draft", own_layers(network, layers), network, options)


def _chains(name: str, draft: Network, network: Network, options: Options) -> SpeculativeMethod:
    return DraftModelMethod(
        name,
        DraftCache(draft, network.vocabulary_size),
        network.vocabulary_size,
        whole(options, "num_speculative_tokens", 5, 1, MOST_NODES),
        sample=switch(options, "sample", default=False),
        confidence=share(options, "confidence", CONFIDENCE),
    )


PRESETS = (
    Preset(
        "draft_model",
        "a small model with the same tokenizer drafts a chain (Leviathan et al., Chen et al.)",
        _draft_model,
        needs="a draft model: model=FOLDER",
        options=("model", *OPTIONS),
        published=PublishedSpeed(2.28, "Spec-Bench, Vicuna-7B with a 68M draft, greedy, RTX 3090"),
    ),
    Preset(
        "self_draft",
        "the target's own first layers draft a chain; `layers` of them, a third by default",
        _self_draft,
        options=("layers", *OPTIONS),
    ),
)
