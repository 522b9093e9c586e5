"""How near two answers were where they part: whether rounding can have decided, or cannot."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

from evals.speculative.cases.prompt import Prompt
from evals.speculative.single import Model
from weft.decoding.network.packing import Span
from weft.decoding.sampling import CounterRng, SamplingParams


class Margin:
    """Reads texts anew with the plain model, alone."""

    def __init__(self, path: Path) -> None:
        self._model = Model(path, dtype="float32")

    def between(
        self,
        prompt: Prompt,
        shaping: SamplingParams,
        seed: int,
        plain: Sequence[int],
        other: Sequence[int],
    ) -> float:
        """What would have had to change at their first difference for `plain` to be `other`.

        Greedy: by how much the logit of the other's token is below the largest, in nats. Drawn: how
        far the drawn number was from the other's token, as probability. Infinite where one answer
        ends and the other goes on, or could not be drawn at all.
        """
        pairs = enumerate(zip(plain, other, strict=False))
        at = next((at for at, (one, two) in pairs if one != two), None)
        if at is None:
            return inf
        text = [*self._model.encoded(prompt), *plain[:at]]
        read = self._model.network.forward([Span(0, range(len(text)), text, 1)])
        logits = read[0].logits[-1]
        if shaping.greedy:
            return float(logits.max() - logits[other[at]])
        law = shaping.distribution(logits)
        running = law.cumsum()
        low, high = running[other[at]] - law[other[at]], running[other[at]]
        drawn = CounterRng(seed)._number(at, 0) * running[-1]
        return max(float(low - drawn), float(drawn - high), 0.0) if law[other[at]] else inf
