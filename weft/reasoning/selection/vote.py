"""Votes over canonical answers: counts, weights and ties."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Ties = Literal["shorter", "first"]


@dataclass(frozen=True, slots=True)
class Vote:
    """The vote of sample `index` for `key`, in `tokens`. `score` is a scorer's."""

    index: int
    key: str
    tokens: int
    weight: float = 1.0
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """The votes for one answer and their total weight."""

    key: str
    votes: tuple[Vote, ...]
    weight: float

    @property
    def count(self) -> int:
        """The number of votes."""
        return len(self.votes)

    @property
    def shortest(self) -> int:
        """The tokens of its shortest vote."""
        return min(vote.tokens for vote in self.votes)

    @property
    def first(self) -> int:
        """The lowest index among its votes."""
        return min(vote.index for vote in self.votes)

    @property
    def best(self) -> int:
        """The index of the vote of the highest score, then of the fewest tokens."""
        return min(self.votes, key=lambda b: (-_score(b), b.tokens, b.index)).index


def count_votes(votes: Iterable[Vote], ties: Ties = "shorter") -> tuple[Tally, ...]:
    """The answers, the winner first.

    Ties go to the higher mean score, then to the answer with the shortest vote, then to the one
    with the lowest index; with `ties` "first", at once to the lowest index.
    """
    by_key: dict[str, list[Vote]] = defaultdict(list)
    for vote in votes:
        by_key[vote.key].append(vote)
    tallies = [
        Tally(key, tuple(cast), math.fsum(vote.weight for vote in cast))
        for key, cast in by_key.items()
    ]
    return tuple(sorted(tallies, key=lambda tally: rank(tally, ties)))


def rank(tally: Tally, ties: Ties = "shorter") -> tuple[float, ...]:
    """The sort key of tallies; the winner's is the lowest."""
    if ties == "first":
        return (-tally.weight, tally.first)
    return (-tally.weight, -_mean_score(tally), tally.shortest, tally.first)


def shortest_majority(votes: Iterable[Vote]) -> tuple[Tally, ...]:
    """Tallies by c / log(mean length): prefers many and short votes; the winner first.

    "Revisiting the Test-Time Scaling of o1-like Models" (arXiv 2502.12215). A mean length below e
    counts as e.
    """
    reweighed = []
    for tally in count_votes(votes):
        mean = sum(vote.tokens for vote in tally.votes) / tally.count
        weight = tally.count / math.log(max(mean, math.e))
        reweighed.append(Tally(tally.key, tally.votes, weight))
    return tuple(sorted(reweighed, key=rank))


def _score(vote: Vote) -> float:
    return 0.0 if vote.score is None else vote.score


def _mean_score(tally: Tally) -> float:
    return math.fsum(map(_score, tally.votes)) / tally.count
