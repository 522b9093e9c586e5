"""How many tests of a model's own a program passes (CodeMonkeys, arXiv 2501.14723)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.reasoning.code.bench import Bench, passes
from weft.reasoning.code.made import made_tests
from weft.reasoning.code.problem import Problem
from weft.reasoning.question import Question
from weft.reasoning.thought import Sample
from weft.reasoning.thread.asking import Asking


class ByTests:
    """Implements `Scorer`: every candidate runs every test of a matrix; its score is its passes.

    The tests may be wrong: a wrong one is passed by few candidates, and so decides little.
    """

    def __init__(self, bench: Bench, problem: Problem, number: int) -> None:
        self._bench = bench
        self._problem = problem
        self._number = number

    async def score(
        self, thread: Asking, _: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        """See `Scorer.score`: None for each where the model made no test.

        Raises: `SandboxError`.
        """
        tests = await made_tests(thread, self._problem, self._number)
        if not tests:
            return [None] * len(samples)
        programs, inputs = [sample.text for sample in samples], [test.given for test in tests]
        table = await self._bench.table(thread.context, "tested", programs, inputs)
        return [
            float(sum(passes(out, test.expected) for out, test in zip(row, tests, strict=True)))
            for row in table
        ]
