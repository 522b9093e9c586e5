"""Runs programs on inputs, each pair once. Knows problems and a runner, and no model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Protocol

from weft.core.errors import SandboxError
from weft.core.events import Outcome
from weft.core.ids import inside, item
from weft.engine import Inputs, Node, NodeContext, Policy
from weft.reasoning.code.calling import SOLUTION, caller
from weft.reasoning.code.outputs import Output, canonical, output_of
from weft.reasoning.code.problem import Problem
from weft.reasoning.code.sandbox.outcome import Ran


class Runner(Protocol):
    """Runs Python programs that nobody trusts; a `Sandbox` does."""

    async def run(
        self, source: str, stdin: str = "", files: Mapping[str, str | bytes] | None = None
    ) -> Ran:
        """Run `source` in a directory with `files`. Raises: `SandboxError`."""


class Bench:
    """Programs for one problem, tried side by side on as many cores as there are."""

    def __init__(self, runner: Runner, problem: Problem) -> None:
        self._runner = runner
        self._problem = problem
        self._slots = asyncio.Semaphore(os.cpu_count() or 1)
        self._known: dict[tuple[str, str], Output] = {}

    @property
    def tests(self) -> int:
        """How many public tests the problem has."""
        return len(self._problem.tests)

    async def check(self) -> None:
        """See whether programs can be run at all. Raises: `SandboxError`, which says why not."""
        await self._runner.run("")

    async def output(self, program: str, given: str) -> Output:
        """What comes of `program` with the input `given`. Raises: `SandboxError`."""
        known = self._known.get((program, given))
        if known is None:
            async with self._slots:
                known = output_of(await self._ran(program, given))
            self._known[program, given] = known
        return known

    async def _ran(self, program: str, given: str) -> Ran:
        if not self._problem.function:
            return await self._runner.run(program, given)
        around = caller(self._problem.function)
        return await self._runner.run(around, given, {SOLUTION: program})

    async def table(
        self, context: NodeContext, name: str, programs: Sequence[str], inputs: Sequence[str]
    ) -> list[list[Output]]:
        """For each program its outputs in order; each program is a node `name[...]` of `context`.

        Raises: `SandboxError`.
        """
        place = inside(context.scope, name)

        def node(number: int, program: str) -> Node:
            async def work(_: NodeContext, __: Inputs) -> list[Output]:
                return [await self.output(program, given) for given in inputs]

            policy = Policy(resource="sandbox", on_failure="skip")
            return Node(item(place, number), work, policy=policy, kind="tool")

        nodes = [node(number, program) for number, program in enumerate(programs)]
        context.append(nodes)
        return [_value(await context.outcome(each.id)) for each in nodes]

    async def failures(self, program: str) -> list[str]:
        """The public tests that `program` fails, each in words; empty: it passes all."""
        found = []
        for number, test in enumerate(self._problem.tests, 1):
            output = await self.output(program, test.given)
            if not passes(output, test.expected):
                given = self._problem.shown(test.given)
                found.append(
                    f"Test {number}\nInput:\n{given}\nExpected:\n{test.expected}\n"
                    f"Got:\n{output.shown()}"
                )
        return found


def passes(output: Output, expected: str | None) -> bool:
    """Whether `output` is what was expected; nothing expected: whether there is any."""
    return output.ok and (expected is None or output.text == canonical(expected))


def _value(outcome: Outcome) -> list[Output]:
    if isinstance(outcome.value, list):
        return outcome.value
    raise SandboxError(f"programs could not be run: {outcome.failure or outcome.status}")
