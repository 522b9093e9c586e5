"""What one step learns from: texts as tokens, some of them with the form that their answer fills.

Knows neither where they come from nor how they are laid out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.train.block.forms import Form
from weft.decoding.diffusion.train.block.noise import Ids
from weft.decoding.speculative.train.corpus import Corpus, Text


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """A text [tokens] whose answer begins with token number `answer`: behind the text where that
    was cut off before. With a `form`, the answer is the form's tokens and what ends it.
    """

    tokens: Ids
    answer: int
    form: Form | None = None

    @classmethod
    def of(cls, text: Text, longest: int, form: Form | None = None) -> Page:
        """The first `longest` tokens, without a form that does not fit into them."""
        tokens = np.array(text.tokens[:longest], dtype=np.int64)
        return cls(tokens, text.answer, form if len(tokens) == len(text.tokens) else None)


@dataclass(frozen=True, slots=True)
class Pages:
    """Learnt at once."""

    texts: tuple[Page, ...]

    @classmethod
    def of(cls, texts: Iterable[Page]) -> Pages:
        return cls(tuple(texts))

    @property
    def learnt_tokens(self) -> int:
        """Those of answers."""
        return sum(max(0, len(page.tokens) - page.answer) for page in self.texts)


class Talks:
    """Conversations that are at hand. Implements `Source`."""

    def __init__(self, corpus: Corpus) -> None:
        self._texts = sorted(corpus.texts, key=lambda text: len(text.tokens))

    def draw(self, chance: np.random.Generator, texts: int, longest: int) -> Pages:
        """Texts of about one length, so that few places are empty."""
        texts = min(texts, len(self._texts))
        first = int(chance.integers(len(self._texts) - texts + 1))
        return Pages.of(Page.of(text, longest) for text in self._texts[first : first + texts])
