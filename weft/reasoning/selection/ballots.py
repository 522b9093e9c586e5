"""Samples as ballots, and the choice that a vote comes to. Asks nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.reasoning.selection.selector import Selected
from weft.reasoning.selection.vote import Ballot, Standing
from weft.reasoning.thought import Sample


def ballots(samples: Sequence[Sample], weights: Mapping[int, float] | None = None) -> list[Ballot]:
    """The votes of `samples` that have a key; each weighs 1, or what `weights` say."""
    return [
        Ballot(s.index, s.key, s.tokens, 1.0 if weights is None else weights[s.index], s.score)
        for s in samples
        if s.key is not None
    ]


def elect(
    samples: Sequence[Sample],
    cast: Sequence[Ballot],
    count: Callable[[Sequence[Ballot]], Sequence[Standing]],
    how: str = "votes",
) -> Selected:
    """The winner of `count` over `cast`; without any ballot the shortest sample that has a text."""
    standings = count(cast)
    if not standings:
        return unread(samples)
    winner = standings[0]
    of = sum(standing.count for standing in standings)
    why = f"{winner.count} of {of} {how} for {winner.key!r}"
    if len(standings) > 1:
        why += f", then {standings[1].count} for {standings[1].key!r}"
    return Selected(winner.best, winner.key, why)


def unread(samples: Sequence[Sample]) -> Selected:
    """The choice where no answer can be compared: one that is whole, then the shortest."""
    written = [sample for sample in samples if sample.text.strip()]
    if not written:
        return Selected(None, None, "no sample has an answer")
    chosen = min(written, key=lambda s: (s.status != "finished", s.tokens, s.index))
    return Selected(chosen.index, None, "no sample has an answer that can be compared")
