"""Prompt and answer are judged as one text before a block is released.

A fill that is harmless alone may complete something that is not. Knows no judge: that is a port.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Protocol

import numpy as np

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.filters import Refusal

REFUSAL: Final = "I cannot help with that."
"""What a server may say instead of an answer that was refused."""


class Moderator(Protocol):
    """Judges texts. Called in the thread that decodes: has to be quick."""

    def objection(self, text: str) -> str | None:
        """Why `text` must not be shown, in a word that quotes nothing of it; None: it may."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is logged of a review: no text, nor anything it could be told from.

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
class Moderation:
    """A `Guard`. `decode` turns ids into text, special tokens spelt out or left out; `note` gets a
    record of each review. A judge that fails lets nothing through.
    """

    moderator: Moderator
    decode: Callable[[Sequence[int]], str]
    note: Callable[[Record], None] | None = None

    def begin(self, canvas: Canvas, _traits: Traits) -> Reviewing:
        return Reviewing(self, canvas)


class Reviewing:
    """Implements `Guarding` for one canvas."""

    def __init__(self, settings: Moderation, canvas: Canvas) -> None:
        self._settings = settings
        literal = canvas.frozen[canvas.first :]
        # where they stand belongs to it: the gaps make the sense
        prior = np.where(literal, canvas.ids[canvas.first :], -1)
        self._prior = _digest(prior.tolist()) if literal.any() else ""
        self._prompt = _digest(canvas.ids[: canvas.first].tolist())
        self._reviews = 0

    def review(self, canvas: Canvas, end: int) -> Refusal | None:
        """See `Guarding`."""
        text = self._settings.decode(canvas.ids[:end].tolist())
        try:
            objection = self._settings.moderator.objection(text)
        except Exception:  # noqa: BLE001 - another's program: whatever it raises, it did not agree
            objection = "the moderator failed"
        ours = ~canvas.undecided & ~canvas.frozen
        if self._settings.note is not None:
            filled = int(ours[canvas.first : end].sum())
            verdict = objection or "released"
            self._settings.note(Record(self._prior, self._prompt, filled, self._reviews, verdict))
        self._reviews += 1
        return None if objection is None else Refusal(objection)


def _digest(ids: Sequence[int]) -> str:
    return blake2b(" ".join(map(str, ids)).encode(), digest_size=8).hexdigest()
