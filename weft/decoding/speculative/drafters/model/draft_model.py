"""Which token a draft model's logits become: the likeliest, or one that is drawn."""

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
from weft.decoding.speculative.acceptance import Acceptor, ExactMatch, RejectionSampling
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    Drafter,
    DraftLength,
    FixedDraftLength,
    ProposalRequest,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.model.draft_cache import (
    DraftCache,
    DraftSequence,
    load_draft_model,
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
from weft.decoding.speculative.request import DraftRequest
from weft.decoding.speculative.speculation import MOST_NODES

TokenDistribution = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DraftedToken:
    """A token, how probable the draft model finds it, and the law it was drawn from, if it was.

    stamp: the pass it came of, on the timeline. runner_up: the next likeliest token, and how
    probable that is; only known of tokens that were not drawn.
    """

    token: int
    confidence: float
    law: TokenDistribution | None = None
    stamp: int = -1
    runner_up: tuple[int, float] = (-1, 0.0)


class TokenChoice(Protocol):
    """Chooses for one sequence."""

    def choose(self, logits: NDArray[np.float32], position: int, stamp: int) -> DraftedToken:
        """Of logits [vocabulary], for a position of the sequence."""


class GreedyChoice:
    """Implements `TokenChoice`: the largest logit, the lowest id of equals. Draws nothing."""

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
    """Implements `TokenChoice`: a draw of the shaped law, which the ratio test needs to know.

    Laws are of the target's size `vocabulary`. The numbers come of the request's `seed` and differ
    from those that decide, as the test demands.
    """

    def __init__(self, shaping: SamplingParams, seed: int, vocabulary: int) -> None:
        self._shaping = shaping
        own = blake2b(b"draft %d" % seed, digest_size=8).digest()
        self._chance = CounterRng(int.from_bytes(own, "little"))
        self._vocabulary = vocabulary

    def choose(self, logits: NDArray[np.float32], position: int, stamp: int) -> DraftedToken:
        law = np.zeros(self._vocabulary)
        law[: len(logits)] = self._shaping.law(logits)
        token = self._chance.token(law, position)
        return DraftedToken(token, float(law[token]), law, stamp)


@dataclass(slots=True, eq=False)
class DraftChain:
    """What may follow a line's text and the tokens `ahead` of it: at most `most` tokens.

    `goes_on` is asked before every further token, and knows what was chosen so far. A token that
    was chosen stays: if what it is decided whether it stays, a draw would no longer have its law.
    """

    line: DraftSequence
    choice: TokenChoice
    most: int
    ahead: tuple[int, ...] = ()
    goes_on: Callable[[Sequence[DraftedToken]], bool] = lambda _chosen: True
    chosen: list[DraftedToken] = field(default_factory=list)

    @property
    def tokens(self) -> tuple[int, ...]:
        """All beyond the text."""
        return (*self.ahead, *(chosen.token for chosen in self.chosen))

    @property
    def tree(self) -> DraftTree:
        """The chosen tokens as a draft; with their laws if they were drawn."""
        tokens = [chosen.token for chosen in self.chosen]
        laws = [chosen.law for chosen in self.chosen if chosen.law is not None]
        return DraftTree.chain(tokens, laws or None)


def grow_chains(cache: DraftCache, chains: Sequence[DraftChain]) -> None:
    """Draft until no chain goes on: as many passes as the longest of them has tokens."""
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
    """Goes on until a token was less probable than `least` to the draft model itself.

    As in transformers' assisted generation.
    """

    least: float

    def __call__(self, chosen: Sequence[DraftedToken]) -> bool:
        return not chosen or chosen[-1].confidence >= self.least


class ModelDrafter:
    """Implements `Drafter`: one sequence of `DraftModelMethod`."""

    def __init__(self, method: DraftModelMethod, line: DraftSequence, choice: TokenChoice) -> None:
        self.name = method.name
        self.line = line
        self.choice = choice
        self.drafted: Sequence[DraftedToken] = ()
        """What was drafted since the text last went on."""
        self._method = method

    def extend(self, tokens: Sequence[int]) -> None:
        self.line.extend(tokens)
        self._method.settle(self.drafted, tokens)
        self.drafted = ()

    def propose(self, most: int) -> DraftProposal:
        proposed = self._method.propose([(self, most)])[0]
        if isinstance(proposed, BaseException):
            raise proposed
        return proposed


class DraftModelMethod:
    """Implements `Method` (vanilla speculative decoding) with drafts of up to `most` tokens.

    The drafts are the likeliest tokens and go with `ExactMatch`; or, with `sample`, they are drawn
    at the request's own temperature, keep their laws and go with `RejectionSampling`. A draft stops
    after a token that the draft model gave less than `confidence`. `vocabulary` is the target's.
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
        self.name = name
        self.acceptor: Acceptor = RejectionSampling() if sample else ExactMatch()
        self._cache = cache
        self._vocabulary = vocabulary
        self._most = most
        self._sample = sample
        self._stop = ConfidenceStop(confidence)

    @property
    def forwards(self) -> int:
        """Passes of the draft model so far; one for many rows counts once."""
        return self._cache.forwards

    def lengths(self) -> DraftLength:
        return FixedDraftLength(self._most)

    def begin(self) -> Drafter:
        return self.begin_for(DraftRequest(SamplingParams(1.0)))

    def begin_for(self, asked: DraftRequest) -> Drafter:
        """The drafter of a new sequence; what it draws depends on the request only."""
        choice: TokenChoice = GreedyChoice()
        if self._sample:
            choice = SampledChoice(asked.shaping, asked.seed, self._vocabulary)
        return ModelDrafter(self, self._cache.open(), choice)

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        own = [(drafter, most) for drafter, most in asks if isinstance(drafter, ModelDrafter)]
        chains = [
            DraftChain(drafter.line, drafter.choice, most, goes_on=self._stop)
            for drafter, most in own
        ]
        try:
            grow_chains(self._cache, chains)
        except Exception as error:  # noqa: BLE001 - told to all rows, who go on without drafts
            return [error] * len(chains)
        for (drafter, _), chain in zip(own, chains, strict=True):
            drafter.drafted = chain.chosen
        return [DraftProposal(chain.tree, source=self.name) for chain in chains]

    def settle(self, drafted: Sequence[DraftedToken], written: Sequence[int]) -> None:
        """The text went on as drafted, or otherwise: then put on the timeline what was in vain."""
        held = 0
        while held < min(len(drafted), len(written)) and drafted[held].token == written[held]:
            held += 1
        if self._cache.timeline is not None:
            for chosen in drafted[held:]:
                self._cache.timeline.discard(chosen.stamp)

    def end(self, drafter: Drafter) -> None:
        if isinstance(drafter, ModelDrafter):
            self._cache.close(drafter.line)

    def close(self) -> None:
        """The weights go with the last reference to them."""


OPTIONS = ("num_speculative_tokens", "sample", "confidence")
CONFIDENCE = 0.4
"""That of transformers' assisted generation."""


def _make(network: Network, options: Options) -> SpeculativeMethod:
    folder = text(options, "model")
    if folder is None:
        raise SpecError("draft_model needs a draft model", hint="model=FOLDER, or use self_draft")
    return chains("draft_model", load_draft_model(network, folder), network, options)


def chains(name: str, draft: Network, network: Network, options: Options) -> SpeculativeMethod:
    """Chains of `draft` for `network`, as `OPTIONS` say."""
    return DraftModelMethod(
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
    published=PublishedSpeed(2.28, "Spec-Bench, Vicuna-7B with a 68M draft, greedy, RTX 3090"),
)
