"""Votes over canonical answers: counts, weights and ties. Knows no sample and no model."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Ties = Literal["shorter", "first"]


@dataclass(frozen=True, slots=True)
class Vote:
    """The vote of sample `index`, which came to `key` in `tokens`. `score` is a scorer's."""

    index: int
    key: str
    tokens: int
    weight: float = 1.0
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How one answer stands: its ballots, and all of their weights together.

    `best` is the index of its ballot of the highest score, then of the fewest tokens.
    """

    key: str
    ballots: tuple[Vote, ...]
    weight: float

    @property
    def count(self) -> int:
        """How many voted for it."""
        return len(self.ballots)

    @property
    def shortest(self) -> int:
        """The tokens of its shortest ballot."""
        return min(ballot.tokens for ballot in self.ballots)

    @property
    def first(self) -> int:
        """The lowest index among its ballots."""
        return min(ballot.index for ballot in self.ballots)

    @property
    def best(self) -> int:
        """The index of the ballot that stands for all of them."""
        return min(self.ballots, key=lambda b: (-_score(b), b.tokens, b.index)).index


def tally(ballots: Iterable[Vote], ties: Ties = "shorter") -> tuple[Tally, ...]:
    """The answers, the winner first.

    Ties go to the higher mean score, then to the answer with the shortest ballot, then to the one
    with the lowest index; with `ties` "first", at once to the lowest index.
    """
    by_key: dict[str, list[Vote]] = defaultdict(list)
    for ballot in ballots:
        by_key[ballot.key].append(ballot)
    standings = [
        Tally(key, tuple(cast), math.fsum(ballot.weight for ballot in cast))
        for key, cast in by_key.items()
    ]
    return tuple(sorted(standings, key=lambda standing: rank(standing, ties)))


def rank(standing: Tally, ties: Ties = "shorter") -> tuple[float, ...]:
    """What standings are sorted by, the winner's the least."""
    if ties == "first":
        return (-standing.weight, standing.first)
    return (-standing.weight, -_mean_score(standing), standing.shortest, standing.first)


def shortest_majority(ballots: Iterable[Vote]) -> tuple[Tally, ...]:
    """Standings by c / log(mean length): many votes, and short ones, the winner first.

    "Revisiting the Test-Time Scaling of o1-like Models" (arXiv 2502.12215). A mean length below e
    counts as e.
    """
    reweighed = []
    for standing in tally(ballots):
        mean = sum(ballot.tokens for ballot in standing.ballots) / standing.count
        weight = standing.count / math.log(max(mean, math.e))
        reweighed.append(Tally(standing.key, standing.ballots, weight))
    return tuple(sorted(reweighed, key=rank))


def _score(ballot: Vote) -> float:
    return 0.0 if ballot.score is None else ballot.score


def _mean_score(standing: Tally) -> float:
    return math.fsum(map(_score, standing.ballots)) / standing.count
