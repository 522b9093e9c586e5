"""What requests wrote, by the node of the program that asked: bounded, the oldest out first."""

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

    Two halves: when the new one is full it becomes the old one, which is forgotten as a whole. So
    no step pays for forgetting.
    """

    def __init__(self, most: int) -> None:
        self._half = max(most // 2, 1)
        self.halves = (NgramIndex(), NgramIndex())

    def __len__(self) -> int:
        """Tokens."""
        return sum(map(len, self.halves))

    def add(self, text: Sequence[int]) -> None:
        """Keep the last tokens of a text, as many as fit."""
        new, _ = self.halves
        kept = text[max(0, len(text) - self._half + 1) :]
        if len(new) + len(kept) + 1 > self._half:
            new = NgramIndex()
            self.halves = (new, self.halves[0])
        new.add(kept)


class TextMemory:
    """At most `tokens` tokens of texts: each is kept for its label, and for all.

    The texts for all have half of it. The labels share the other half: none has more than an eighth
    of that, and the one that was used least lately is forgotten first. Use it from one thread.
    """

    def __init__(self, tokens: int) -> None:
        self._half = max(tokens // 2, _SHARE)
        self._common = RecentTexts(self._half)
        self._labels: OrderedDict[str, RecentTexts] = OrderedDict()

    def __len__(self) -> int:
        """Tokens on all shelves."""
        return len(self._common) + self._of_labels()

    @property
    def labels(self) -> tuple[str, ...]:
        """Those that are known, the one that was used last at the end."""
        return tuple(self._labels)

    def sources(self, label: str) -> Iterator[NgramIndex]:
        """Where to look for what a request of `label` may write, the closest first."""
        own = self._labels.get(label[:LONGEST_LABEL])
        if own is not None:
            self._labels.move_to_end(label[:LONGEST_LABEL])
            yield from own.halves
        yield from self._common.halves

    def remember(self, label: str, text: Sequence[int]) -> None:
        """Keep a text; without a label for all only. Two tokens or fewer say nothing."""
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
