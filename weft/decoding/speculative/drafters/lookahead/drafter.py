"""Lookahead decoding's drafter: a window read with every pass, and the n-grams it has made."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.drafter import Seen
from weft.decoding.speculative.drafters.lookahead.pool import Pool
from weft.decoding.speculative.drafters.lookahead.window import Window

_RECENT = 512


@dataclass(frozen=True, slots=True)
class LookaheadOptions:
    """`window` columns (W), n-grams of `ngram` tokens (N), `guesses` of each first token (G).

    A pass reads `ngram` - 1 rows of the window and at most as many tokens of every guess. `text`:
    n-grams of the sequence itself go into the pool as well (the authors' code does so with the
    prompt). The defaults are the authors' for a 7B model on a large accelerator.

    Raises: `ValueError` for sizes that leave nothing to guess.
    """

    window: int = 7
    ngram: int = 5
    guesses: int = 7
    text: bool = True

    def __post_init__(self) -> None:
        if self.window < 1 or self.ngram < 2 or self.guesses < 1:
            raise ValueError(f"no n-grams come of {self}")

    @property
    def nodes(self) -> int:
        """Drafted tokens at most."""
        return self.guesses * (self.ngram - 1)


FEW = LookaheadOptions(window=4, ngram=4, guesses=3)
"""For processors, which read about ten tokens in the time of one: 11 + 9 rows beside the root."""


class Lookahead:
    """Implements `Watching`. `ends` never stand in the window: all after them would be one token.

    The window stays where it is however many tokens are accepted, like the authors' default.
    """

    name = "lookahead"
    taps: tuple[int, ...] = ()

    def __init__(self, options: LookaheadOptions, ends: frozenset[int] = frozenset()) -> None:
        self._options = options
        self._ends = ends
        self._pool = Pool(options.guesses)
        self._window: Window | None = None
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._random = random.Random(0)  # noqa: S311  guesses decide no token

    def extend(self, tokens: Sequence[int]) -> None:
        size = self._options.ngram
        for token in tokens:
            self._recent.append(token)
            if self._options.text and len(self._recent) >= size:
                self._pool.add([self._recent[i] for i in range(-size, 0)])

    def propose(self, most: int) -> Draft:
        if not most or not self._recent:
            return Draft()
        if self._window is None:
            options = self._options
            self._window = Window(options.window, options.ngram - 1, self._guess)
        last = self._recent[-1]
        self._window.root(last)
        return Draft(self._pool.tree(last, most), self._window.plan(), self.name)

    def see(self, seen: Seen) -> None:
        window = self._window
        if window is None or seen.logits is None:
            return
        cells = np.concatenate([seen.logits[:1], seen.aux])  # the root is the first of them
        if len(cells) != len(window.rows) * window.width:
            return  # the pass was not asked to read the window
        found = self._found(cells[-window.width :])
        if window.full:
            for ngram in window.ngrams(found):
                self._pool.add(ngram)
        window.advance(found)

    def _found(self, logits: NDArray[np.float32]) -> list[int]:
        return [
            self._guess() if token in self._ends else token
            for token in map(int, logits.argmax(axis=1))
        ]

    def _guess(self) -> int:
        """A token of the text, as the authors begin."""
        for _ in range(8):
            token = self._random.choice(self._recent)
            if token not in self._ends:
                break
        return token
