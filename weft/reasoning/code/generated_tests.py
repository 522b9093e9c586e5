"""Tests written by a model, and scores of programs by them (CodeMonkeys, arXiv 2501.14723)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.code.bench import ProgramBench, passes
from weft.reasoning.code.problem import CodeExample, CodeProblem, example
from weft.reasoning.code.prompts import (
    INPUTS_SCHEMA,
    TESTS_SCHEMA,
    Messages,
    inputs_messages,
    tests_messages,
)
from weft.reasoning.parsing import object_with
from weft.reasoning.question import Question
from weft.reasoning.thought import Sample

_MOST_CHARS: Final = 20_000


async def generate_inputs(thread: ChatThread, problem: CodeProblem, number: int) -> Sequence[str]:
    """At most `number` different inputs, written by the model."""
    made = await ask_inputs(thread, "inputs", problem, inputs_messages(problem, number))
    return made[:number]


async def ask_inputs(
    thread: ChatThread, name: str, problem: CodeProblem, messages: Messages
) -> Sequence[str]:
    """The inputs in the model's answer to `messages`."""
    reply = await thread.ask(name, messages, purpose="step", schema=INPUTS_SCHEMA)
    listed = _listed("inputs", reply.text)
    return [each.given for each in _fitting(problem, ((given, None) for given in listed))]


async def generate_tests(
    thread: ChatThread, problem: CodeProblem, number: int
) -> Sequence[CodeExample]:
    """At most `number` tests with different inputs, written by the model."""
    reply = await thread.ask(
        "tests", tests_messages(problem, number), purpose="step", schema=TESTS_SCHEMA
    )
    tests = [test for test in _listed("tests", reply.text) if isinstance(test, dict)]
    pairs = ((test.get("input"), test.get("expected")) for test in tests)
    return [each for each in _fitting(problem, pairs) if each.expected is not None][:number]


def _listed(name: str, text: str) -> list[object]:
    found = (object_with((name,), text) or {}).get(name)
    return found if isinstance(found, list) else []


def _fitting(problem: CodeProblem, pairs: Iterable[tuple[object, object]]) -> Sequence[CodeExample]:
    """Examples of the problem's form, with different inputs of at most `_MOST_CHARS`."""
    found: dict[str, CodeExample] = {}
    for given, expected in pairs:
        read = example(given, expected, called=bool(problem.function))
        if read is not None and len(read.given) <= _MOST_CHARS:
            found.setdefault(read.given, read)
    return tuple(found.values())


class GeneratedTestScorer:
    """Implements `Scorer`: runs every candidate on every generated test and counts the passes.

    Generated tests may be wrong: a wrong one is passed by few candidates, and so decides little.
    """

    def __init__(self, bench: ProgramBench, problem: CodeProblem, number: int) -> None:
        self._bench = bench
        self._problem = problem
        self._number = number

    async def score(
        self, thread: ChatThread, _: Question, samples: Sequence[Sample]
    ) -> Sequence[float | None]:
        """See `Scorer.score`: all None where the model wrote no test. Raises: `SandboxError`."""
        tests = await generate_tests(thread, self._problem, self._number)
        if not tests:
            return [None] * len(samples)
        programs, inputs = [sample.text for sample in samples], [test.given for test in tests]
        table = await self._bench.table(thread.context, "tested", programs, inputs)
        return [
            float(sum(passes(out, test.expected) for out, test in zip(row, tests, strict=True)))
            for row in table
        ]
