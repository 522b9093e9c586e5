"""Lookahead decoding (arXiv 2402.02057): n-grams from Jacobi iterations, verified as a draft.

Needs no training: the target's own passes make the n-grams, on auxiliary rows.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from weft.decoding.network.network import Network
from weft.decoding.speculative.draft import ROOT, AuxiliaryRows, DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    PerSequenceMethod,
    SpeculativeMethod,
    TargetOutputs,
)
from weft.decoding.speculative.presets import Options, Preset, PublishedSpeed, switch, whole
from weft.decoding.speculative.speculation import MOST_NODES


class NgramPool:
    """At most `guesses` continuations of every token; the least recently used goes first."""

    def __init__(self, guesses: int) -> None:
        self._guesses = guesses
        self._after: dict[int, dict[tuple[int, ...], None]] = {}

    def add(self, ngram: Sequence[int]) -> None:
        """Add a continuation of its first token, as the latest one."""
        key, rest = ngram[0], tuple(ngram[1:])
        continuations = self._after.setdefault(key, {})
        continuations.pop(rest, None)
        continuations[rest] = None
        if len(continuations) > self._guesses:
            del continuations[next(iter(continuations))]

    def guesses(self, token: int) -> list[tuple[int, ...]]:
        """Continuations of `token`, the latest first."""
        return list(reversed(self._after.get(token, {})))

    def tree(self, token: int, most: int) -> DraftTree:
        """The guesses after `token` with shared prefixes merged; at most `most` nodes."""
        tokens: list[int] = []
        parents: list[int] = []
        place: dict[tuple[int, int], int] = {}
        for guess in self.guesses(token):
            node = ROOT
            for each in islice(guess, most):
                step = (node, each)
                if step not in place:
                    if len(tokens) == most:
                        return DraftTree(tuple(tokens), tuple(parents))
                    place[step] = len(tokens)
                    tokens.append(each)
                    parents.append(node)
                node = place[step]
        return DraftTree(tuple(tokens), tuple(parents))


class JacobiWindow:
    """`rows[r][c]` is a guess at the token `c + r` positions after the root, which is `rows[0][0]`.

    Row 0 guesses the text to come; a pass over all rows computes the row after the last. The window
    begins with row 0 alone, wider by one for each missing row: while rows are missing, each step
    drops a column and none is added at the far end.
    """

    def __init__(self, columns: int, rows: int, guess: Callable[[], int]) -> None:
        self._levels = rows
        self.rows = [[guess() for _ in range(columns + rows - 1)]]

    @property
    def full(self) -> bool:
        """Whether all rows exist, so that columns are n-grams except for their last token."""
        return len(self.rows) == self._levels

    @property
    def width(self) -> int:
        """Current number of columns."""
        return len(self.rows[0])

    def plan(self) -> AuxiliaryRows:
        """All cells but the root, row by row, as auxiliary rows under the root.

        Row 0 is causal; a later cell sees row 0 up to its column, then its own column.
        """
        cells = [(r, c) for r, row in enumerate(self.rows) for c in range(len(row))][1:]
        return AuxiliaryRows(
            tokens=tuple(self.rows[r][c] for r, c in cells),
            under=(ROOT,) * len(cells),
            depths=tuple(r + c for r, c in cells),
            sees=_sees(len(self.rows), self.width),
        )

    def ngrams(self, following: list[int]) -> Iterator[tuple[int, ...]]:
        """Of a full window, each column with the token `following` it."""
        columns = zip(*self.rows, following, strict=True)
        return iter(columns)

    def advance(self, following: list[int]) -> None:
        """Add the row `following` [width] the last; a full window drops its oldest row.

        `root` then sets the root.
        """
        if self.full:
            self.rows = [*self.rows[1:], following]
        else:
            self.rows = [row[1:] for row in (*self.rows, following)]

    def root(self, token: int) -> None:
        """Set the root to the newest token of the text."""
        self.rows[0][0] = token


@lru_cache(maxsize=64)
def _sees(rows: int, width: int) -> NDArray[np.bool_]:
    """[cells, cells] without the root's, cells in row-major order."""
    row, column = np.divmod(np.arange(1, rows * width), width)
    below = (row == 0) & (column <= column[:, None])
    own = (column == column[:, None]) & (row <= row[:, None])
    return np.asarray(below | own)


_RECENT = 512


@dataclass(frozen=True, slots=True)
class LookaheadOptions:
    """`window` columns (W), n-grams of `ngram` tokens (N), `guesses` of each first token (G).

    A pass reads `ngram` - 1 rows of the window and at most as many tokens of every guess. `text`:
    n-grams of the sequence itself go into the pool, too (in the authors' code, of the prompt). The
    defaults are the authors' for a 7B model on a large accelerator.

    Raises: `ValueError` for sizes without guesses.
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
        """The most drafted tokens."""
        return self.guesses * (self.ngram - 1)


FEW = LookaheadOptions(window=4, ngram=4, guesses=3)
"""For CPUs, which read about ten tokens in the time of one: 11 + 9 rows besides the root."""


class LookaheadDrafter:
    """Implements `TargetObserver`. `ends` never occur in the window.

    The window does not move with accepted tokens, like the authors' default.
    """

    name = "lookahead"
    taps: tuple[int, ...] = ()

    def __init__(self, options: LookaheadOptions, ends: frozenset[int] = frozenset()) -> None:
        self._options = options
        self._ends = ends
        self._pool = NgramPool(options.guesses)
        self._window: JacobiWindow | None = None
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._random = random.Random(0)  # noqa: S311  guesses decide no token

    def extend(self, tokens: Sequence[int]) -> None:
        size = self._options.ngram
        for token in tokens:
            self._recent.append(token)
            if self._options.text and len(self._recent) >= size:
                self._pool.add([self._recent[i] for i in range(-size, 0)])

    def propose(self, most: int) -> DraftProposal:
        if not most or not self._recent:
            return DraftProposal()
        if self._window is None:
            options = self._options
            self._window = JacobiWindow(options.window, options.ngram - 1, self._guess)
        last = self._recent[-1]
        self._window.root(last)
        return DraftProposal(self._pool.tree(last, most), self._window.plan(), self.name)

    def see(self, outputs: TargetOutputs) -> None:
        window = self._window
        if window is None or not len(outputs.logits):
            return
        if 1 + len(outputs.aux) != len(window.rows) * window.width:
            return  # the pass did not read the window
        cells = np.concatenate([outputs.logits[:1], outputs.aux])  # the root is the first of them
        following = self._following(cells[-window.width :])
        if window.full:
            for ngram in window.ngrams(following):
                self._pool.add(ngram)
        window.advance(following)

    def _following(self, logits: NDArray[np.float32]) -> list[int]:
        return [
            self._guess() if token in self._ends else token
            for token in map(int, logits.argmax(axis=1))
        ]

    def _guess(self) -> int:
        """A random token of the text, like the authors' initial guesses."""
        for _ in range(8):
            token = self._random.choice(self._recent)
            if token not in self._ends:
                break
        return token


def _make(network: Network, options: Options) -> SpeculativeMethod:
    usual = FEW if network.embed([0]).device.type == "cpu" else LookaheadOptions()
    sizes = LookaheadOptions(
        window=whole(options, "window", usual.window, 1, 64),
        ngram=whole(options, "ngram", usual.ngram, 2, 16),
        guesses=whole(options, "guesses", usual.guesses, 1, 64),
        text=switch(options, "text", default=usual.text),
    )
    most = min(sizes.nodes, MOST_NODES)
    nodes = whole(options, "num_speculative_tokens", most, 1, MOST_NODES)
    ends = network.generation.end_ids
    return PerSequenceMethod("lookahead", lambda: LookaheadDrafter(sizes, ends), nodes)


PRESETS = (
    Preset(
        "lookahead",
        "n-grams from a window of Jacobi iterations, read along with every pass",
        _make,
        options=("num_speculative_tokens", "window", "ngram", "guesses", "text"),
        published=PublishedSpeed(1.64, "Spec-Bench, Vicuna-7B greedy on an A100, W=7 N=5 G=7"),
    ),
)
