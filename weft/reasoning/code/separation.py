"""Selection of one of several programs by inputs that distinguish them (S*, arXiv 2502.14382).

Beyond the paper: inputs found for one pair also split the winner's own group, which plays another
round.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from weft.reasoning.chat.thread import ChatThread, Job
from weft.reasoning.code.bench import ProgramBench, ProgramOutput, key_by_output
from weft.reasoning.code.generated_tests import ask_inputs
from weft.reasoning.code.problem import CodeProblem
from weft.reasoning.code.prompts import judge_messages, separate_messages
from weft.reasoning.question import Question
from weft.reasoning.selection.pairwise import Pairwise
from weft.reasoning.selection.selector import Selection
from weft.reasoning.thought import Sample

Case = tuple[str, ProgramOutput, ProgramOutput]
"""An input, and the outputs of two programs for it."""
_SHOWN: Final = 3
_VERDICT: Final = re.compile(r"verdict\W{0,6}(a|b|neither)\b", re.IGNORECASE)


class InputJudge:
    """Implements `PairwiseJudge` for samples whose texts are programs.

    The model writes inputs that should separate two programs. The programs run on them, and of up
    to three inputs with different results the model judges which are right. `known` are further
    inputs to try. A program that never has a result where the other has one is worse.
    """

    def __init__(self, bench: ProgramBench, problem: CodeProblem, known: Sequence[str]) -> None:
        self._bench = bench
        self._problem = problem
        self._known = tuple(known)
        self._made: set[str] = set()

    @property
    def found(self) -> tuple[str, ...]:
        """All inputs so far, in an order independent of timing."""
        return (*self._known, *sorted(self._made.difference(self._known)))

    async def compare(self, thread: ChatThread, _: Question, one: Sample, other: Sample) -> float:
        """See `PairwiseJudge.compare`. Raises: `SandboxError`."""
        messages = separate_messages(self._problem, one.text, other.text)
        made = await ask_inputs(thread, "separate", self._problem, messages)
        self._made.update(made)
        cases = []
        for given in dict.fromkeys((*made, *self._known)):
            outputs = [await self._bench.output(sample.text, given) for sample in (one, other)]
            if outputs[0] != outputs[1]:
                cases.append((given, outputs[0], outputs[1]))
            if len(cases) == _SHOWN:
                break
        return await self._judge_cases(thread, cases)

    async def _judge_cases(self, thread: ChatThread, cases: Sequence[Case]) -> float:
        if not cases:
            thread.returns("no input separates them")
            return 0.0
        failing = {(first.ok, second.ok) for _, first, second in cases}
        if failing in ({(True, False)}, {(False, True)}):
            ahead = 1.0 if failing == {(True, False)} else -1.0
        else:
            shown = [(given, first.shown(), second.shown()) for given, first, second in cases]
            messages = judge_messages(self._problem, shown)
            reply = await thread.ask("judge", messages, purpose="step", temperature=0.0)
            ahead = read_verdict(reply.text)
        given, first, second = cases[0]
        thread.returns(f"{given!r}: {first.shown()!r} or {second.shown()!r}: {ahead:+g}")
        return ahead


def read_verdict(text: str) -> float:
    """1 for A, -1 for B, 0 for neither or none; the last verdict in `text` counts."""
    found = _VERDICT.findall(text)
    return {"a": 1.0, "b": -1.0}.get(found[-1].lower(), 0.0) if found else 0.0


_ROUNDS: Final = 3


class SeparationSelector:
    """Implements `Selector` for samples whose texts are programs, keyed by their outputs.

    A tournament between one program of each group, then inside the winner's group as far as newly
    found inputs split it, for at most three rounds.
    """

    name = "sstar"

    def __init__(self, bench: ProgramBench, problem: CodeProblem, inputs: Sequence[str]) -> None:
        self._bench = bench
        self._judge = InputJudge(bench, problem, inputs)

    async def select(
        self, thread: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Selection:
        """See `Selector.select`. Raises: `SandboxError`."""
        chosen = first = await Pairwise(self._judge).select(thread, question, samples)
        group = [sample for sample in samples if sample.key == chosen.key]
        for number in range(2, _ROUNDS + 1):
            name, found = f"outputs{number}", self._judge.found
            group = await key_by_output(thread.context, name, self._bench, group, found)
            if len({sample.key for sample in group}) < 2:
                break
            job = _play_job(Pairwise(self._judge), question, group)
            (again,) = await thread.fork(f"round{number}", [("pairs", job)], role="round")
            if again is None:
                break
            chosen = replace(again, why=f"{chosen.why}; among these, {again.why}")
            group = [sample for sample in group if sample.key == chosen.key]
        return replace(chosen, key=first.key)


def _play_job(pairwise: Pairwise, question: Question, group: Sequence[Sample]) -> Job[Selection]:
    async def play(thread: ChatThread) -> Selection:
        return await pairwise.select(thread, question, group)

    return play
