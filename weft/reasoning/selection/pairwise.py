"""A tournament of pairs (S*, arXiv 2502.14382), judged by a model in both orders of a pair."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final

from weft.core.values import JsonSchema
from weft.reasoning.chat.thread import ChatThread, Job
from weft.reasoning.question import Question
from weft.reasoning.selection.prompts import EXCERPT_CHARS, excerpt, judge_messages
from weft.reasoning.selection.selector import PairwiseJudge, Selection, shortest_written
from weft.reasoning.thought import Sample

_SCHEMA: Final[JsonSchema] = {"enum": ["A", "B", "C"]}
_LETTER: Final = re.compile(r"\b([ABC])\b")


class ModelPairwiseJudge:
    """Implements `PairwiseJudge`: 1, -1, or 0 where the two orders disagree."""

    async def compare(
        self, thread: ChatThread, question: Question, one: Sample, other: Sample
    ) -> float:
        """See `PairwiseJudge.compare`."""
        ahead = await self._ahead(thread, "forth", question, one, other)
        ahead -= await self._ahead(thread, "back", question, other, one)
        return (ahead > 0) - (ahead < 0)

    async def _ahead(
        self, thread: ChatThread, name: str, question: Question, one: Sample, other: Sample
    ) -> int:
        chars = EXCERPT_CHARS // 2
        messages = judge_messages(question, excerpt(one.text, chars), excerpt(other.text, chars))
        reply = await thread.ask(name, messages, purpose="step", schema=_SCHEMA, temperature=0.0)
        found = _LETTER.findall(reply.text) if reply.ok else []
        return {"A": 1, "B": -1}.get(found[-1] if found else "C", 0)


Group = Callable[[Sample], str | None]
"""The group of a sample, whose members need no comparison; None: it does not take part."""


def by_key(sample: Sample) -> str | None:
    """Groups samples by answer."""
    return sample.key


class Pairwise:
    """A tournament of the shortest samples of the `most` largest groups, each against each.

    Wins count 1, draws a half; ties go to the larger group, then to the shorter, then to the lowest
    index.
    """

    name = "pairwise"

    def __init__(self, judge: PairwiseJudge, group: Group = by_key, most: int = 6) -> None:
        self._judge = judge
        self._group = group
        self._most = most

    async def select(
        self, thread: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Selection:
        groups: dict[str, list[Sample]] = defaultdict(list)
        for sample in samples:
            if (name := self._group(sample)) is not None:
                groups[name].append(sample)
        players = sorted(groups.values(), key=_order)[: self._most]
        if not players:
            return shortest_written(samples)
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
        return Selection(best.index, best.key, why, scores=scores)

    def _match(
        self, question: Question, one: Sequence[Sample], other: Sequence[Sample]
    ) -> Job[float]:
        async def match(thread: ChatThread) -> float:
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
