"""Candidates that a proposer may start from: the Pareto front by case (GEPA: Agrawal et al., arXiv
2507.19457), and merges of two of its members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from random import Random
from typing import Final

from weft.optimisation.candidates import Candidate, SearchState
from weft.optimisation.propose.tree import mean_scores

_MOST_PAIRS: Final = 20


def measured(state: SearchState) -> list[Candidate]:
    """All candidates with outcomes, in the order in which they were measured first."""
    return list(dict.fromkeys(candidate for block in state.blocks for candidate in block))


def case_winners(state: SearchState) -> Iterator[list[Candidate]]:
    """The best candidates of each measured case: of each place in each block.

    Cases that could not be scored say nothing, and are left out.
    """
    for block in state.blocks:
        for at, base in enumerate(block[state.baseline]):
            if base.scored:
                top = max(outcomes[at].score for outcomes in block.values())
                yield [each for each, outcomes in block.items() if outcomes[at].score == top]


def case_front(state: SearchState) -> dict[Candidate, int]:
    """Members of the front, in the order of `measured`, with how many cases each wins.

    A candidate is best on some case. It is dropped where every case that it wins is also won by
    another one that is left; those of the lowest mean score go first. Takes time linear in the
    outcomes.
    """
    won: dict[Candidate, list[int]] = {}
    rivals: list[int] = []
    for case, winners in enumerate(case_winners(state)):
        rivals.append(len(winners))
        for each in winners:
            won.setdefault(each, []).append(case)
    scores = mean_scores(state)
    for each in sorted((each for each in measured(state) if each in won), key=scores.__getitem__):
        if all(rivals[case] > 1 for case in won[each]):
            for case in won.pop(each):
                rivals[case] -= 1
    return {each: len(won[each]) for each in measured(state) if each in won}


def drawn(front: Mapping[Candidate, int], random: Random) -> Candidate | None:
    """A member with a chance in proportion to the cases that it wins; None of an empty front."""
    if not front:
        return None
    return random.choices(list(front), list(front.values()))[0]


def merged(better: Candidate, other: Candidate, baseline: Candidate) -> Candidate:
    """Of each knob the option that has left the baseline; where both did, that of `better`."""
    edits = other.edits(baseline) | better.edits(baseline)
    return Candidate.of(dict(baseline.settings) | edits)


def merges(
    state: SearchState, front: Mapping[Candidate, int], random: Random
) -> Iterator[Candidate]:
    """New merges of two members that both differ from the baseline; some pairs, in random order."""
    known, scores = set(measured(state)), mean_scores(state)
    pairs = list(combinations([each for each in front if each.edits(state.baseline)], 2))
    random.shuffle(pairs)
    for one, other in pairs[:_MOST_PAIRS]:
        better, worse = (one, other) if scores[one] >= scores[other] else (other, one)
        candidate = merged(better, worse, state.baseline)
        if candidate not in known:
            known.add(candidate)
            yield candidate
