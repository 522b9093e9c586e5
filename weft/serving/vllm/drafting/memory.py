"""Bounded memory of texts by the node of the program that asked for them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

from weft.serving.vllm.drafting.ngram_index import NgramIndex

LONGEST_LABEL: Final = 200
_LABELS: Final = 256
_SHARE: Final = 8


class RecentTexts:
    """The latest texts, of at most `most` tokens together.

    There are two halves. When the new half is full it becomes the old one, which is dropped as a
    whole, so that no step pays for dropping single texts.
    """

    def __init__(self, most: int) -> None:
        self._half = max(most // 2, 1)
        self.halves = (NgramIndex(), NgramIndex())

    def __len__(self) -> int:
        """Tokens."""
        return sum(map(len, self.halves))

    def add(self, text: Sequence[int]) -> None:
        """Add the last tokens of a text, as many as fit."""
        new, _ = self.halves
        tail = text[max(0, len(text) - self._half + 1) :]
        if len(new) + len(tail) + 1 > self._half:
            new = NgramIndex()
            self.halves = (new, self.halves[0])
        new.add(tail)


class TextMemory:
    """At most `tokens` tokens of texts, each stored for its label and for all labels.

    The common store has half of the capacity. The labels share the other half: each has at most an
    eighth of it, and the one used least recently is dropped first. For a single thread.
    """

    def __init__(self, tokens: int) -> None:
        self._half = max(tokens // 2, _SHARE)
        self._common = RecentTexts(self._half)
        self._labels: OrderedDict[str, RecentTexts] = OrderedDict()

    def __len__(self) -> int:
        """Tokens in all stores."""
        return len(self._common) + self._of_labels()

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels with texts, the one used last at the end."""
        return tuple(self._labels)

    def sources(self, label: str) -> Iterator[NgramIndex]:
        """Indexes to search for the continuation of a request of `label`, the closest first."""
        own = self._labels.get(label[:LONGEST_LABEL])
        if own is not None:
            self._labels.move_to_end(label[:LONGEST_LABEL])
            yield from own.halves
        yield from self._common.halves

    def remember(self, label: str, text: Sequence[int]) -> None:
        """Store a text of three tokens or more; without a label in the common store only."""
        if len(text) < 3:
            return
        self._common.add(text)
        if not label:
            return
        label = label[:LONGEST_LABEL]
        texts = self._labels.setdefault(label, RecentTexts(self._half // _SHARE))
        self._labels.move_to_end(label)
        texts.add(text)
        while len(self._labels) > _LABELS or self._of_labels() > self._half:
            self._labels.popitem(last=False)

    def _of_labels(self) -> int:
        return sum(map(len, self._labels.values()))
