"""Every way that chance can go, with its probability: exact laws instead of samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=Hashable)
Array = NDArray[np.float64]


class Script:
    """A `Chance` that follows given decisions, and notes what else could have been decided."""

    def __init__(self, decisions: tuple[int, ...]) -> None:
        self.decisions = decisions
        self.made: list[tuple[int, list[float]]] = []

    def one_of(self, probabilities: list[float]) -> int:
        at = len(self.made)
        first = next(i for i, probability in enumerate(probabilities) if probability > 0)
        decision = self.decisions[at] if at < len(self.decisions) else first
        self.made.append((decision, probabilities))
        return decision

    def token(self, law: Array, position: int) -> int:
        del position
        return self.one_of(list(law))

    def accepts(self, probability: float, position: int, sibling: int) -> bool:
        del position, sibling
        return self.one_of([probability, 1.0 - probability]) == 0

    @property
    def probability(self) -> float:
        return float(np.prod([p[decision] for decision, p in self.made]))

    def next(self) -> tuple[int, ...] | None:
        """The decisions of the way after this one."""
        for at in range(len(self.made) - 1, -1, -1):
            decision, probabilities = self.made[at]
            later = [i for i in range(decision + 1, len(probabilities)) if probabilities[i] > 0]
            if later:
                return (*(d for d, _ in self.made[:at]), later[0])
        return None


def ways(happen: Callable[[Script], T]) -> Iterator[tuple[T, float]]:
    """What `happen` comes to, once for each way that chance can go."""
    decisions: tuple[int, ...] | None = ()
    while decisions is not None:
        script = Script(decisions)
        yield happen(script), script.probability
        decisions = script.next()


def law_of(happen: Callable[[Script], T]) -> dict[T, float]:
    """The probability of everything that `happen` can come to."""
    law: dict[T, float] = defaultdict(float)
    for result, probability in ways(happen):
        law[result] += probability
    return law
