"""When a vote is decided: what still runs cannot change its winner. Knows no sampler."""

from __future__ import annotations

from collections.abc import Sequence

from weft.reasoning.sampling.sampler import Branch
from weft.reasoning.selection.vote import Ballot, Standing, tally


def ballots_of(branches: Sequence[Branch]) -> list[Ballot]:
    """The votes of those of `branches` that ended with an answer."""
    return [Ballot(b.index, b.key, b.tokens) for b in branches if b.key is not None]


def decided(branches: Sequence[Branch]) -> Standing | None:
    """The answer that wins the vote of all `branches` whatever those that run come to, or None.

    All other answers, and one that nobody has given yet, are given every running sample. Who still
    wins has won; on equal counts when its shortest sample is shorter than any of theirs can still
    be, which is at least the tokens that are written.
    """
    running = [branch for branch in branches if branch.running]
    standings = tally(ballots_of([branch for branch in branches if not branch.running]))
    if not standings:
        return None
    winner, *others = standings
    least = min((branch.tokens for branch in running), default=0)
    rivals = [(other.count, other.shortest) for other in others] + [(0, least)]
    for count, shortest in rivals:
        reach = count + len(running)
        tie_is_lost = bool(running) and winner.shortest >= min(shortest, least)
        if reach > winner.count or (reach == winner.count and tie_is_lost):
            return None
    return winner
