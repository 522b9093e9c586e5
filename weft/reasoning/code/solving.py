"""What strategies for code share: settings, a sandbox, a thought made of drafts and a choice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.core.errors import BuildError, ReasoningError, SandboxError
from weft.core.ports import ModelClient
from weft.engine import Inputs, NodeContext, Work
from weft.reasoning.code.bench import Bench, Runner
from weft.reasoning.code.choosing import CHOICES, choose
from weft.reasoning.code.problem import Problem, problem_of
from weft.reasoning.code.sandbox.limits import Limits
from weft.reasoning.code.sandbox.sandbox import Sandbox
from weft.reasoning.code.writing import Draft
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.settings import read_settings
from weft.reasoning.thought import Sample, Thought
from weft.reasoning.thread.asking import Asking

SETTINGS: Final[Mapping[str, Any]] = {
    "debug": 3,
    "select": "sstar",
    "wall_s": 10.0,
    "memory_mib": 512,
    "allow": [],
}
"""Settings of all strategies for code: rounds of mending, the choice (see `CHOICES`), the limits of
one run, and the protections that may be missing (see `Sandbox`)."""
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Task:
    """What drafts are written for. `keep` tokens of the purse are kept back for the choice."""

    problem: Problem
    bench: Bench
    system: str
    keep: int


Write = Callable[[Asking, Task], Awaitable[Sequence[Draft | None]]]


class Solver:
    """How drafts become a thought. Raises: `BuildError` for settings that are none."""

    def __init__(
        self,
        name: str,
        model: ModelClient,
        options: ThinkOptions,
        defaults: Mapping[str, Any],
        runner: Runner | None = None,
    ) -> None:
        self.settings = read_settings(name, options.settings, {**SETTINGS, **defaults})
        self._name = name
        self._model = model
        self._options = options
        how = self.settings["select"]
        if how not in CHOICES:
            hint = f"there are: {', '.join(CHOICES)}"
            raise BuildError(f"{name}: there is no choice {how!r}", hint=hint)
        if self.settings["debug"] < 0:
            raise BuildError(f"{name}: debug must not be negative")
        self._runner = runner or _sandbox(name, self.settings)

    def work(self, question: Question, write: Write) -> Work:
        """The work that has drafts written by `write`, and chooses. Raises: `BuildError`."""
        problem = problem_of(question)

        async def work(context: NodeContext, _: Inputs) -> Thought:
            bench = Bench(self._runner, problem)
            await bench.check()
            thread = await Asking.begin(context, self._model, self._options)
            task = Task(problem, bench, question.system, self._options.answer_tokens)
            drafts = await write(thread, task)
            return await self._thought(thread, task, question, drafts)

        return work

    async def _thought(
        self, thread: Asking, task: Task, question: Question, drafts: Sequence[Draft | None]
    ) -> Thought:
        written = [
            draft or Draft(None, 0, 0, 0, "", "failed", "its thread failed") for draft in drafts
        ]
        if not any(draft.text for draft in written):
            reasons = dict.fromkeys(draft.reason for draft in written if draft.reason)
            raise ReasoningError(f"{self._name}: nothing was written: {'; '.join(reasons)}")
        samples = _samples(written, task.problem)
        choice = await choose(
            thread, task.bench, question, task.problem, samples, self.settings["select"]
        )
        index = choice.selected.index
        if index is not None:
            answer, cut = choice.samples[index].text, _is_cut(choice.samples[index])
        else:
            first = next(draft for draft in written if draft.text)
            answer, cut = first.text, first.status == "length"
        tree, counts = thread.finish(answer, choice.selected.why)
        key, why = choice.selected.key, choice.selected.why
        return Thought(answer, key, tree, counts, choice.samples, why=why, cut=cut)


def _is_cut(chosen: Sample) -> bool:
    """Whether a program may lack its end: it was cut off, and no test says that it is all there."""
    return chosen.status == "length" and chosen.score != 1.0


def _samples(drafts: Sequence[Draft], problem: Problem) -> tuple[Sample, ...]:
    tests = len(problem.tests)
    return tuple(draft.sample(index, tests) for index, draft in enumerate(drafts))


def _sandbox(name: str, settings: Mapping[str, Any]) -> Sandbox:
    try:
        limits = Limits(
            wall_s=settings["wall_s"],
            cpu_s=max(1, round(settings["wall_s"])),
            memory_bytes=settings["memory_mib"] * _MIB,
        )
        return Sandbox(limits, allow=settings["allow"])
    except (ValueError, SandboxError) as error:
        raise BuildError(f"{name}: {error}") from error
