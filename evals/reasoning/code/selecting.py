"""Ways to choose among the same programs, measured with the scripted programmer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from evals.engine.rows import Row
from evals.planning.effort import Effort
from evals.reasoning.code.coder import Coder, Skill
from evals.reasoning.code.exercises import EXERCISES, Exercise
from weft.engine import Inputs, NodeContext, NodeFn
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.code.bench import ProgramBench, passes
from weft.reasoning.code.problem import CodeExample, CodeProblem, problem_of
from weft.reasoning.code.sandbox.sandbox import CodeSandbox
from weft.reasoning.code.solver import ProgramDraft, choose
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.strategy import run_thought
from weft.reasoning.thought import Sample, Thought
from weft.testing import FakeModel

SKILLS: Final = {
    "right_40": Skill(0.4),
    "right_20": Skill(0.2),
    "right_20_judge_60": Skill(0.2, judge=0.6),
}
"""Cases: how often programs are right; tests are at a rate of 0.75, judgements at 0.8 or 0.6."""
CHOICES: Final = ("first", "majority", "tests", "sstar")
WIDTH: Final = 8
_TOKENS: Final = 100
"""What each program is said to have cost, so that no tie is decided by it."""


class Choosing:
    """Implements `Strategy`: chooses among `samples` that are there already."""

    name = "choosing"

    def __init__(
        self, coder: Coder, bench: ProgramBench, samples: Sequence[Sample], how: str
    ) -> None:
        self._model = FakeModel(coder.answer)
        self._bench = bench
        self._samples = samples
        self._how = how

    def work(self, question: Question) -> NodeFn:
        """See `Strategy.work`."""
        problem = problem_of(question)

        async def work(context: NodeContext, _: Inputs) -> Thought:
            thread = await ChatThread.begin(context, self._model, ThinkOptions(budget=10**6))
            choice = await choose(thread, self._bench, question, problem, self._samples, self._how)
            index = choice.selected.index
            answer = "" if index is None else choice.samples[index].text
            return thread.finish(answer, choice.selected.why)

        return work


@dataclass(slots=True)
class Tally:
    """Sums over problems and seeds."""

    right: float = 0.0
    requests: int = 0
    problems: int = 0

    def rows(self, case: str, system: str) -> Iterator[Row]:
        """As figures."""
        yield Row(case, system, "accuracy", self.right / self.problems, "share")
        yield Row(case, system, "requests", self.requests / self.problems, "calls")


class Examiner:
    """Knows for one exercise which programs are right; each is run once."""

    def __init__(self, exercise: Exercise, sandbox: CodeSandbox) -> None:
        self.question = exercise.question()
        self.problem: CodeProblem = problem_of(self.question)
        self.bench = ProgramBench(sandbox, self.problem)
        self._hidden = [
            CodeExample(json.dumps(given), json.dumps(exercise.result(given), sort_keys=True))
            for given in exercise.hidden
        ]

    async def right(self, program: str) -> bool:
        """Whether `program` passes all hidden tests."""
        for test in self._hidden:
            if not passes(await self.bench.output(program, test.given), test.expected):
                return False
        return bool(program)


async def measure(effort: Effort, sandbox: CodeSandbox) -> list[Row]:
    """Accuracy and model calls of each way to choose, over exercises and seeds."""
    seeds = effort.of(3, 20)
    systems = (*CHOICES, "random", "sieve_random", "oracle")
    tallies = {(case, system): Tally() for case in SKILLS for system in systems}
    for exercise in EXERCISES[: effort.of(5, len(EXERCISES))]:
        examiner = Examiner(exercise, sandbox)
        for case, skill in SKILLS.items():
            for seed in range(seeds):
                coder = Coder(exercise, skill, seed)
                found = await _measured(coder, examiner)
                for system, (right, requests) in found.items():
                    tally = tallies[case, system]
                    tally.right += right
                    tally.requests += requests
                    tally.problems += 1
    return [row for (case, system), tally in tallies.items() for row in tally.rows(case, system)]


async def _measured(coder: Coder, examiner: Examiner) -> dict[str, tuple[float, int]]:
    """Of each system whether (or how likely) it is right, and how often it asks the model."""
    samples = []
    for index, program in enumerate(coder.programs(WIDTH)):
        failed = len(await examiner.bench.failures(program))
        draft = ProgramDraft(program, failed, 0, _TOKENS, program)
        samples.append(draft.sample(index, len(examiner.problem.tests)))
    right = [await examiner.right(sample.text) for sample in samples]
    best = max(sample.score or 0.0 for sample in samples)
    sieved = [ok for ok, sample in zip(right, samples, strict=True) if sample.score == best]
    found = {
        "random": (sum(right) / len(right), 0),
        "sieve_random": (sum(sieved) / len(sieved), 0),
        "oracle": (float(any(right)), 0),
    }
    for how in CHOICES:
        made = Choosing(coder, examiner.bench, samples, how)
        thought = await run_thought(made, examiner.question)
        found[how] = (await examiner.right(thought.answer), thought.counts.requests)
    return found
