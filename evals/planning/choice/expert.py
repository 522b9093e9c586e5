"""A small language model of one domain: bytes predicted from the ones before, by counting.

Interpolated Witten-Bell smoothing (Witten and Bell 1991) over orders 0 to `ORDER`; contexts of the
prompt count like those of the training texts, so names can be copied from it. Knows no domain.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

ORDER: Final = 5
_Counts = dict[bytes, Counter[int]]
_NOTHING: Final[tuple[Counter[int], int]] = (Counter(), 0)


class NgramExpert:
    """Learns from texts when it is made; not changed by what it is asked afterwards."""

    def __init__(self, texts: Iterable[str]) -> None:
        counts: _Counts = defaultdict(Counter)
        for text in texts:
            _learn(counts, text.encode())
        self._counts = {context: (counter, counter.total()) for context, counter in counts.items()}

    @property
    def parameters(self) -> int:
        """How many counts it keeps."""
        return sum(len(counter) for counter, _ in self._counts.values())

    def bits_per_byte(self, prompt: str, answer: str) -> float:
        """The loss on `answer` after `prompt`: mean bits for each of its bytes."""
        seen: _Counts = defaultdict(Counter)
        before, wanted = f"{prompt}\n".encode(), answer.encode()
        _learn(seen, before)
        text = before + wanted
        bits = 0.0
        for place in range(len(before), len(text)):
            bits -= math.log2(self._probability(text, place, seen))
        return bits / len(wanted)

    def _probability(self, text: bytes, place: int, seen: _Counts) -> float:
        probability = 1 / 256
        for order in range(min(ORDER, place) + 1):
            context = text[place - order : place]
            own, total = self._counts.get(context, _NOTHING)
            near = seen.get(context)
            if near is not None:
                total += near.total()
            elif not total:
                break  # no longer context has been seen either
            near = near or _NOTHING[0]
            kinds = len(own) + sum(byte not in own for byte in near)
            found = own[text[place]] + near[text[place]]
            probability = (found + kinds * probability) / (total + kinds)
        return probability


def _learn(counts: _Counts, text: bytes) -> None:
    for place in range(len(text)):
        for order in range(min(ORDER, place) + 1):
            counts[text[place - order : place]][text[place]] += 1
