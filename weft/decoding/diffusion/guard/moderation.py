"""Moderation before release: prompt and answer as one text, and requests a model would refuse.

A fill that is harmless alone may complete a harmful text, and literals in an answer may lead a
model around its refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.ports import Refusal
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.stats import log_probabilities

REFUSAL: Final = "I cannot help with that."
"""What a server may say instead of an answer that was refused."""


class Moderator(Protocol):
    """Judges texts. Called in the thread that decodes: must be quick."""

    def objection(self, text: str) -> str | None:
        """Why `text` must not be shown, as a word that quotes nothing of it; None: it may be."""


@dataclass(frozen=True, slots=True)
class ModerationRecord:
    """Log entry of a review, without the text or anything that reveals it.

    prior    a hash of the literals of the answer; empty: there were none
    prompt   a hash of the prompt
    filled   slots of the answer that are decided, literals not counted
    block    which review of this answer it was, from 0
    verdict  "released", or the objection
    """

    prior: str
    prompt: str
    filled: int
    block: int
    verdict: str


@dataclass(frozen=True, slots=True)
class ModerationGuard:
    """An `OutputGuard`. `decode` turns ids into text, with or without special tokens; `note`
    receives a record of each review. Nothing is released when the moderator fails.
    """

    moderator: Moderator
    decode: Callable[[Sequence[int]], str]
    note: Callable[[ModerationRecord], None] | None = None

    def begin(self, canvas: Canvas, _traits: ModelTraits) -> ModerationSession:
        return ModerationSession(self, canvas)


class ModerationSession:
    """Implements `GuardSession` for one canvas."""

    def __init__(self, settings: ModerationGuard, canvas: Canvas) -> None:
        self._settings = settings
        literal = canvas.frozen[canvas.first :]
        # their positions count, too: the gaps carry meaning
        prior = np.where(literal, canvas.ids[canvas.first :], -1)
        self._prior = _digest(prior.tolist()) if literal.any() else ""
        self._prompt = _digest(canvas.ids[: canvas.first].tolist())
        self._reviews = 0

    def review(self, canvas: Canvas, end: int) -> Refusal | None:
        text = self._settings.decode(canvas.ids[:end].tolist())
        try:
            objection = self._settings.moderator.objection(text)
        except Exception:  # noqa: BLE001 - foreign code: any error is an objection
            objection = "the moderator failed"
        ours = ~canvas.undecided & ~canvas.frozen
        if self._settings.note is not None:
            filled = int(ours[canvas.first : end].sum())
            verdict = objection or "released"
            self._settings.note(
                ModerationRecord(self._prior, self._prompt, filled, self._reviews, verdict)
            )
        self._reviews += 1
        return None if objection is None else Refusal(objection)


def _digest(ids: Sequence[int]) -> str:
    return blake2b(" ".join(map(str, ids)).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class RefusalProbe:
    """Refuses a request that the model itself would refuse.

    openings  token sequences that refusals begin with
    most      the probability of one of them, or of an immediate end, from which it refuses
    slots     of the answer that are probed

    Raises: `ValueError` for values out of range.
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

    def begin(self, prompt: Sequence[int], traits: ModelTraits, row: int) -> RefusalQuery:
        """The probe of an answer to `prompt` without literals, with the cache of `row`."""
        fill = 0 if traits.mask_id is None else traits.mask_id
        canvas = Canvas(prompt, self.slots, fill, row=row)
        stop = canvas.length
        if traits.block:
            stop = min(stop, (canvas.first // traits.block + 1) * traits.block)
        canvas.window = range(canvas.first, stop)
        wanted = np.arange(canvas.first, stop, dtype=np.int64)
        query = Query(canvas, np.arange(stop), wanted, stop, scratch=True, kind="look")
        return RefusalQuery(self, query, traits.end_ids)


@dataclass(frozen=True, slots=True)
class RefusalQuery:
    """A probe: `query` joins some pass, `review` takes its logits."""

    settings: RefusalProbe
    query: Query
    end_ids: frozenset[int]

    def probability(self, logits: NDArray[np.float32]) -> float:
        """Probability of a refusal or of an immediate end. logits: [slots, vocabulary]."""
        logp = log_probabilities(logits)
        scores = [
            float(sum(logp[at, token] for at, token in enumerate(opening[: len(logp)])))
            for opening in self.settings.openings
        ]
        scores += [float(logp[0, token]) for token in sorted(self.end_ids)]
        return float(min(1.0, np.exp(scores).sum()))

    def review(self, logits: NDArray[np.float32]) -> Refusal | None:
        """A refusal where the model would have given one."""
        if self.probability(logits) >= self.settings.most:
            return Refusal("the model would refuse")
        return None
