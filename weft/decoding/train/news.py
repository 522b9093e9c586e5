"""What a training tells whoever asked for it, beside the progress of its steps."""

from __future__ import annotations

from dataclasses import dataclass

from weft.decoding.train.frame import Progress


@dataclass(frozen=True, slots=True)
class Writes:
    """A model is writing: so many of so many texts are there."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Measures:
    """What was trained is measured on `texts` that it did not learn from."""

    texts: int


News = Writes | Progress | Measures
