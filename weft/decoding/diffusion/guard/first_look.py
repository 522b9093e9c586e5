"""What the model would say without a prior: one pass, before anything is written into the answer.

A model that would refuse, or say nothing, is not to be led around that by text put into its mouth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import ModelAdapter, Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.filters import Refusal
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.stats import log_probabilities


@dataclass(frozen=True, slots=True)
class FirstLook:
    """`openings` are the tokens that refusals begin with; `most` is the probability of one of
    them, or of an end at once, from which on the request is refused. `slots` are looked at.

    Raises: `ValueError` for what cannot be.
    """

    openings: tuple[tuple[int, ...], ...]
    most: float = 0.5
    slots: int = 32

    def __post_init__(self) -> None:
        longest = max(map(len, self.openings), default=0)
        if not 0.0 < self.most <= 1.0 or not longest <= self.slots or self.slots < 1:
            raise ValueError(f"no first look with {self}")
        if not all(self.openings):
            raise ValueError("a refusal that begins with nothing")

    def begin(self, prompt: Sequence[int], traits: Traits, row: int) -> Look:
        """A look at an answer to `prompt` that has no literals, with the cache of `row`."""
        fill = 0 if traits.mask_id is None else traits.mask_id
        canvas = Canvas(prompt, self.slots, fill, row=row)
        stop = canvas.length
        if traits.block:
            stop = min(stop, (canvas.first // traits.block + 1) * traits.block)
        canvas.window = range(canvas.first, stop)
        wanted = np.arange(canvas.first, stop, dtype=np.int64)
        query = Query(canvas, np.arange(stop), wanted, stop, scratch=True, kind="look")
        return Look(self, query, traits.end_ids)

    def probability(self, adapter: ModelAdapter, prompt: Sequence[int], row: int) -> float:
        """Of a refusal. Costs a pass; the row's cache is left as it was."""
        look = self.begin(prompt, adapter.traits, row)
        return look.probability(adapter.forward([look.query])[0])

    def review(self, adapter: ModelAdapter, prompt: Sequence[int], row: int) -> Refusal | None:
        """A refusal where the model would have given one."""
        look = self.begin(prompt, adapter.traits, row)
        return look.review(adapter.forward([look.query])[0])


@dataclass(frozen=True, slots=True)
class Look:
    """`query` is to be asked in some pass; what the model says to it is read here."""

    settings: FirstLook
    query: Query
    end_ids: frozenset[int]

    def probability(self, logits: NDArray[np.float32]) -> float:
        """Of a refusal, or of an end at once. logits: [slots, vocabulary]."""
        logp = log_probabilities(logits)
        chances = [
            float(sum(logp[at, token] for at, token in enumerate(opening[: len(logp)])))
            for opening in self.settings.openings
        ]
        chances += [float(logp[0, token]) for token in sorted(self.end_ids)]
        return float(min(1.0, np.exp(chances).sum()))

    def review(self, logits: NDArray[np.float32]) -> Refusal | None:
        """A refusal where the model would have given one."""
        if self.probability(logits) >= self.settings.most:
            return Refusal("the model would refuse")
        return None
