"""One causal network that reads many texts, each in a slot of its own, for whoever asks.

Knows neither drafts nor rules.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span


class SharedNetwork:
    """Safe to use from several threads at once: passes are made one after the other.

    Nobody else may use `network`.
    """

    def __init__(self, network: Network) -> None:
        self.vocabulary_size = network.vocabulary_size
        self.path = network.path
        self._network = network
        self._one_pass = threading.Lock()
        self._free: deque[int] = deque()  # given back by finalisers, which must not wait
        self._fresh = count()

    def take(self) -> int:
        """A slot that no other text has."""
        try:
            return self._free.popleft()
        except IndexError:
            return next(self._fresh)

    def give(self, slot: int) -> None:
        """The text of a slot has ended."""
        self._free.append(slot)

    def read(
        self, slot: int, first: int, tokens: Sequence[int], wanted: int
    ) -> NDArray[np.float32]:
        """Read `tokens` at the positions from `first` on: the logits [wanted, vocabulary] of the
        last ones.
        """
        span = Span(slot, range(first, first + len(tokens)), tokens, wanted)
        with self._one_pass:
            return self._network.forward([span])[slot].logits
