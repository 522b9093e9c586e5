"""A tournament of pairs (S*, arXiv 2502.14382). Knows no way to tell two samples apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations

from weft.reasoning.question import Question
from weft.reasoning.selection.ballots import unread
from weft.reasoning.selection.selector import Distinguisher, Selected
from weft.reasoning.thought import Sample
from weft.reasoning.thread.asking import Asking, Job

Group = Callable[[Sample], str | None]
"""What samples have in common that need not be told apart; None: it takes no part."""


def by_key(sample: Sample) -> str | None:
    """Samples with one answer are one group."""
    return sample.key


class Pairwise:
    """One sample of each group, the shortest, plays against that of every other, at most `most`.

    Wins count 1, draws a half; ties go to the larger group, then to the shorter, then to the lowest
    index. The largest groups take part.
    """

    name = "pairwise"

    def __init__(self, judge: Distinguisher, group: Group = by_key, most: int = 6) -> None:
        self._judge = judge
        self._group = group
        self._most = most

    async def select(
        self, thread: Asking, question: Question, samples: Sequence[Sample]
    ) -> Selected:
        """See `Selector.select`."""
        groups: dict[str, list[Sample]] = defaultdict(list)
        for sample in samples:
            if (name := self._group(sample)) is not None:
                groups[name].append(sample)
        players = sorted(groups.values(), key=_order)[: self._most]
        if not players:
            return unread(samples)
        pairs = list(combinations(range(len(players)), 2))
        jobs = [
            (f"{one} or {other}", self._match(question, players[one], players[other]))
            for one, other in pairs
        ]
        found = await thread.fork("pairs", jobs, role="pair") if jobs else ()
        points = [0.0] * len(players)
        for (one, other), ahead in zip(pairs, found, strict=True):
            points[one] += _points(ahead)
            points[other] += 1 - _points(ahead)
        winner = min(range(len(players)), key=lambda place: (-points[place], place))
        best = _shortest(players[winner])
        why = f"{points[winner]:g} of {len(players) - 1} pairs won, {len(pairs)} played"
        scores = {
            sample.index: points[place] for place, team in enumerate(players) for sample in team
        }
        return Selected(best.index, best.key, why, scores=scores)

    def _match(
        self, question: Question, one: Sequence[Sample], other: Sequence[Sample]
    ) -> Job[float]:
        async def match(thread: Asking) -> float:
            return await self._judge.compare(thread, question, _shortest(one), _shortest(other))

        return match


def _shortest(group: Sequence[Sample]) -> Sample:
    return min(group, key=lambda sample: (sample.tokens, sample.index))


def _order(group: Sequence[Sample]) -> tuple[int, int, int]:
    shortest = _shortest(group)
    return -len(group), shortest.tokens, shortest.index


def _points(ahead: float | None) -> float:
    if not ahead:
        return 0.5
    return 1.0 if ahead > 0 else 0.0
