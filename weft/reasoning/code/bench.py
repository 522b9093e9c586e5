"""Runs programs on inputs, each pair once, and compares their output in a canonical form."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from weft.core.errors import SandboxError
from weft.core.events import Outcome
from weft.core.ids import inside, item
from weft.engine import Inputs, Node, NodeContext, Policy
from weft.reasoning.code.problem import CodeProblem, digest
from weft.reasoning.code.sandbox.outcome import SandboxResult
from weft.reasoning.thought import Sample

SOLUTION: Final = "solution.py"
"""The file that defines the function."""
_CALLER: Final = """\
import json, sys
sys.path.insert(0, "")
given = json.load(sys.stdin)
printed, sys.stdout = sys.stdout, sys.stderr
import solution
found = solution
for name in {path!r}:
    found = getattr(found() if isinstance(found, type) else found, name)
result = found(*given)
json.dump(result, printed, default=list, sort_keys=True)
printed.flush()
"""


def caller(function: str) -> str:
    """A program that calls `function` of `SOLUTION` and prints its result.

    `Class.method` is called on a new object. Output of the function goes to standard error.
    """
    return _CALLER.format(path=tuple(function.split(".")))


_REAL: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE][-+]?\d))(?:[eE][-+]?\d+)?")
_SHOWN_CHARS: Final = 400


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """The output of one program for one input: `text`, in canonical form, if `ok`.

    `why` explains missing output, and takes no part in comparisons.
    """

    text: str
    ok: bool = True
    why: str = field(default="", compare=False)

    def shown(self) -> str:
        """The beginning of the output, or the error, for a prompt."""
        if not self.ok:
            return f"(no output: {self.why[:_SHOWN_CHARS]})"
        cut = "..." if len(self.text) > _SHOWN_CHARS else ""
        return self.text[:_SHOWN_CHARS] + cut or "(empty)"


def output_of(ran: SandboxResult) -> ProgramOutput:
    """The output of a run; one that did not finish has none."""
    if not ran.ok:
        return ProgramOutput("", ok=False, why=ran.why)
    return ProgramOutput(canonical(ran.stdout))


def canonical(text: str) -> str:
    """`text` with single blanks and line breaks between words, reals with 6 significant digits."""
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return _REAL.sub(_rounded, "\n".join(line for line in lines if line))


def _rounded(number: re.Match[str]) -> str:
    return format(float(number[0]), ".6g")


class ProgramRunner(Protocol):
    """Runs untrusted Python programs; implemented by `CodeSandbox`."""

    async def run(
        self, source: str, stdin: str = "", files: Mapping[str, str | bytes] | None = None
    ) -> SandboxResult:
        """Run `source` in a directory with `files`. Raises: `SandboxError`."""


class ProgramBench:
    """Runs the programs for one problem, `slots` at once: by default one on each core."""

    def __init__(
        self, runner: ProgramRunner, problem: CodeProblem, slots: int | None = None
    ) -> None:
        self._runner = runner
        self._problem = problem
        self._slots = asyncio.Semaphore(slots or os.cpu_count() or 1)
        self._outputs: dict[tuple[str, str], ProgramOutput] = {}

    @property
    def tests(self) -> int:
        return len(self._problem.tests)

    async def check(self) -> None:
        """Check that programs can be run. Raises: `SandboxError` with the reason if not."""
        await self._runner.run("")

    async def output(self, program: str, given: str) -> ProgramOutput:
        """The output of `program` for the input `given`. Raises: `SandboxError`."""
        output = self._outputs.get((program, given))
        if output is None:
            async with self._slots:
                output = output_of(await self._ran(program, given))
            self._outputs[program, given] = output
        return output

    async def _ran(self, program: str, given: str) -> SandboxResult:
        if not self._problem.function:
            return await self._runner.run(program, given)
        around = caller(self._problem.function)
        return await self._runner.run(around, given, {SOLUTION: program})

    async def table(
        self, context: NodeContext, name: str, programs: Sequence[str], inputs: Sequence[str]
    ) -> list[list[ProgramOutput]]:
        """The outputs of each program, in order; each program is a node `name[...]`.

        Raises: `SandboxError`.
        """
        place = inside(context.scope, name)

        def node(number: int, program: str) -> Node:
            async def work(_: NodeContext, __: Inputs) -> list[ProgramOutput]:
                return [await self.output(program, given) for given in inputs]

            policy = Policy(resource="sandbox", on_failure="skip")
            return Node(item(place, number), work, policy=policy, kind="tool")

        nodes = [node(number, program) for number, program in enumerate(programs)]
        context.append(nodes)
        return [_value(await context.outcome(each.id)) for each in nodes]

    async def failures(self, program: str) -> list[str]:
        """The public tests that `program` fails, described in words; empty: it passes all."""
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


def passes(output: ProgramOutput, expected: str | None) -> bool:
    """Whether `output` equals `expected`; None: whether there is output."""
    return output.ok and (expected is None or output.text == canonical(expected))


def _value(outcome: Outcome) -> list[ProgramOutput]:
    if isinstance(outcome.value, list):
        return outcome.value
    raise SandboxError(f"programs could not be run: {outcome.failure or outcome.status}")


async def key_by_output(
    context: NodeContext,
    name: str,
    bench: ProgramBench,
    samples: Sequence[Sample],
    inputs: Sequence[str],
) -> list[Sample]:
    """`samples` with keys that are equal where all outputs on `inputs` are.

    The texts of samples are programs; the key of a program without any output is None. Runs are
    nodes `name[...]` of `context`. Raises: `SandboxError`.
    """
    programs = list(dict.fromkeys(sample.text for sample in samples))
    rows = await bench.table(context, name, programs, inputs)
    keys = {program: _key(row) for program, row in zip(programs, rows, strict=True)}
    return [replace(sample, key=keys[sample.text]) for sample in samples]


def _key(row: Sequence[ProgramOutput]) -> str | None:
    if not any(output.ok for output in row):
        return None
    return digest("\0".join(output.text if output.ok else "\1" for output in row))
