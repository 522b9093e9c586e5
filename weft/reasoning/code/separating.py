"""The best of several programs, by inputs that tell them apart (S*, arXiv 2502.14382).

Beyond the paper: inputs that were found for one pair also split the winners' own group, which then
plays on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from weft.reasoning.code.bench import Bench
from weft.reasoning.code.clusters import keyed
from weft.reasoning.code.distinguishing import ByInput
from weft.reasoning.code.problem import Problem
from weft.reasoning.question import Question
from weft.reasoning.selection.pairwise import Pairwise
from weft.reasoning.selection.selector import Selected
from weft.reasoning.thought import Sample
from weft.reasoning.thread.asking import Asking, Job

_ROUNDS: Final = 3


class BySeparation:
    """Implements `Selector` for samples whose texts are programs, with keys by what they print.

    A tournament between one program of each group, then among the winner's group as far as the
    inputs that were found meanwhile split it, for at most three rounds.
    """

    name = "sstar"

    def __init__(self, bench: Bench, problem: Problem, inputs: Sequence[str]) -> None:
        self._bench = bench
        self._judge = ByInput(bench, problem, inputs)

    async def select(
        self, thread: Asking, question: Question, samples: Sequence[Sample]
    ) -> Selected:
        """See `Selector.select`. Raises: `SandboxError`."""
        chosen = first = await Pairwise(self._judge).select(thread, question, samples)
        group = [sample for sample in samples if sample.key == chosen.key]
        for number in range(2, _ROUNDS + 1):
            name, found = f"outputs{number}", self._judge.found
            group = await keyed(thread.context, name, self._bench, group, found)
            if len({sample.key for sample in group}) < 2:
                break
            job = _playing(Pairwise(self._judge), question, group)
            (again,) = await thread.fork(f"round{number}", [("pairs", job)], role="round")
            if again is None:
                break
            chosen = replace(again, why=f"{chosen.why}; among these, {again.why}")
            group = [sample for sample in group if sample.key == chosen.key]
        return replace(chosen, key=first.key)


def _playing(pairwise: Pairwise, question: Question, group: Sequence[Sample]) -> Job[Selected]:
    async def play(thread: Asking) -> Selected:
        return await pairwise.select(thread, question, group)

    return play
