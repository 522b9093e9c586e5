"""The base of strategies for code: drafts that are run and repaired, their selection, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from weft.core.errors import BuildError, ReasoningError, SandboxError
from weft.core.ports import ModelClient
from weft.engine import NodeFn
from weft.reasoning.chat.call import Generation
from weft.reasoning.chat.strategy import ChatStrategy, Think
from weft.reasoning.chat.thread import ChatThread, Job
from weft.reasoning.code.bench import ProgramBench, ProgramRunner, key_by_output
from weft.reasoning.code.generated_tests import GeneratedTestScorer, generate_inputs
from weft.reasoning.code.problem import CodeProblem, digest, problem_of, program_in
from weft.reasoning.code.prompts import Messages, mend_messages
from weft.reasoning.code.sandbox.request import SandboxLimits
from weft.reasoning.code.sandbox.sandbox import CodeSandbox
from weft.reasoning.code.separation import SeparationSelector
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.selection.best_of import BestOf
from weft.reasoning.selection.majority import Majority
from weft.reasoning.selection.selector import Selection, Selector
from weft.reasoning.thought import Sample, SampleStatus, Thought

_MOST_FAILURES = 3
_NO_PROGRAM = "There is no program in your answer: write it in one block that begins with ```python"


@dataclass(frozen=True, slots=True)
class ProgramDraft:
    """A program and its test results. `program` None: the model wrote none.

    It fails `failed` of the public tests after `rounds` of repair; `tokens` were generated for it.
    `text` is the model's last answer; `reason` explains a missing one.
    """

    program: str | None
    failed: int
    rounds: int
    tokens: int
    text: str
    status: SampleStatus = "finished"
    reason: str = ""

    def sample(self, index: int, tests: int) -> Sample:
        """The draft as a sample: its text is the program, its key the program's digest."""
        score = (tests - self.failed) / tests if tests and self.program else None
        key = digest(self.program) if self.program else None
        return Sample(index, self.program or "", key, self.tokens, self.status, score)


def write_job(bench: ProgramBench, messages: Messages, rounds: int, keep: int) -> Job[ProgramDraft]:
    """A job that answers `messages` with a program, repaired at most `rounds` times.

    A repaired program is kept only if it fails fewer tests. The last `keep` tokens stay unspent.
    """

    async def write(thread: ChatThread) -> ProgramDraft:
        best: ProgramDraft | None = None
        prompt, tokens = messages, 0
        for number in range(rounds + 1):
            name = f"mend{number}" if number else "write"
            reply = await thread.ask(name, prompt, keep=keep)
            tokens += reply.tokens
            if not reply.ok:
                reason = reply.reason
                best = best or ProgramDraft(None, bench.tests, 0, tokens, "", "failed", reason)
                break
            draft, failures = await _try(bench, reply, number, tokens)
            if best is None or draft.failed < best.failed or best.program is None:
                best = draft
            if not failures:
                break
            prompt = mend_messages(messages, reply.text, failures)
        assert best is not None
        thread.returns(best.program or best.text)
        return best

    return write


async def _try(
    bench: ProgramBench, reply: Generation, number: int, tokens: int
) -> tuple[ProgramDraft, Sequence[str]]:
    """The draft in the model's reply, and its failures in words."""
    program = program_in(reply.text)
    status: SampleStatus = "length" if reply.status == "length" else "finished"
    if program is None:
        return ProgramDraft(None, bench.tests, number, tokens, reply.text, status), [_NO_PROGRAM]
    failures = await bench.failures(program)
    draft = ProgramDraft(program, len(failures), number, tokens, reply.text, status)
    return draft, failures[:_MOST_FAILURES]


Make = Callable[[ProgramBench, CodeProblem, Sequence[str]], Selector]
_MADE: Final = 8
"""How many inputs, or tests, the model is asked for."""
_COMPARING: Final[Mapping[str, Make]] = {
    "majority": lambda _, __, ___: Majority(),
    "tests": lambda bench, problem, _: BestOf(GeneratedTestScorer(bench, problem, _MADE)),
    "sstar": SeparationSelector,
}
CHOICES: Final = ("first", *_COMPARING)
"""Selection methods: the first program; the one whose outputs most others share; by generated
tests; by pairs, on inputs that separate them."""


@dataclass(frozen=True, slots=True)
class ProgramChoice:
    """The selected sample, or none, and all samples with the keys they were compared by."""

    selected: Selection
    samples: tuple[Sample, ...]


async def choose(
    thread: ChatThread,
    bench: ProgramBench,
    question: Question,
    problem: CodeProblem,
    samples: Sequence[Sample],
    how: str,
) -> ProgramChoice:
    """Choose one of `samples`, whose texts are programs, by a method of `CHOICES`.

    Only those that pass the most public tests compete. Raises: `SandboxError`.
    """
    best = _best(samples)
    if len({sample.text for sample in best}) < 2 or how not in _COMPARING:
        return ProgramChoice(_first(samples, best, problem), tuple(samples))
    made = await generate_inputs(thread, problem, _MADE)
    inputs = tuple(dict.fromkeys((*(test.given for test in problem.tests), *made)))
    compared = await key_by_output(thread.context, "outputs", bench, best, inputs)
    selector = _COMPARING[how](bench, problem, inputs)
    selected = await selector.select(thread, question, compared)
    why = f"{_passing(best, samples, problem)}; {how}: {selected.why}"
    by_index = {sample.index: sample for sample in compared}
    return ProgramChoice(
        replace(selected, why=why), tuple(by_index.get(each.index, each) for each in samples)
    )


def _best(samples: Sequence[Sample]) -> list[Sample]:
    programs = [sample for sample in samples if sample.text]
    most = max((sample.score or 0.0 for sample in programs), default=0.0)
    return [sample for sample in programs if (sample.score or 0.0) == most]


def _first(samples: Sequence[Sample], best: Sequence[Sample], problem: CodeProblem) -> Selection:
    if not best:
        return Selection(None, None, f"none of {len(samples)} answers holds a program")
    chosen = best[0]
    return Selection(chosen.index, chosen.key, f"{_passing(best, samples, problem)}; the first")


def _passing(best: Sequence[Sample], samples: Sequence[Sample], problem: CodeProblem) -> str:
    tests = len(problem.tests)
    if not tests:
        return f"{len(best)} of {len(samples)} answers hold a program"
    passed = round((best[0].score or 0.0) * tests)
    return f"{len(best)} of {len(samples)} programs pass {passed} of {tests} public tests"


SETTINGS: Final[Mapping[str, Any]] = {
    "debug": 3,
    "select": "sstar",
    "wall_s": 10.0,
    "memory_mib": 512,
    "allow": [],
}
"""Settings of all strategies for code: rounds of repair, the selection (see `CHOICES`), the limits
of one run, and the protections that may be missing (see `CodeSandbox`)."""
_MIB: Final = 1024 * 1024


_SLOTS_ELSEWHERE: Final = 64
"""Programs that are sent to other machines at once; those know how many they can run."""


@dataclass(frozen=True, slots=True)
class CodeTask:
    """The problem of a strategy's drafts. `keep` tokens are reserved for the selection."""

    problem: CodeProblem
    bench: ProgramBench
    system: str
    keep: int


class CodeStrategy(ChatStrategy):
    """The base of strategies for code: selects one of the drafts of `write`.

    Raises: `BuildError` for wrong settings.
    """

    defaults: ClassVar[Mapping[str, Any]] = SETTINGS
    least: ClassVar[Mapping[str, int]] = {"debug": 0}
    choices: ClassVar = {"select": CHOICES}

    def __init__(
        self, model: ModelClient, options: ThinkOptions, runner: ProgramRunner | None = None
    ) -> None:
        super().__init__(model, options)
        self._sandbox = _sandbox(self.name, self.settings)
        self._runner = runner or self._sandbox
        self._slots: int | None = None

    def place_programs(self, place: Callable[[CodeSandbox], ProgramRunner]) -> None:
        """Run programs with what `place` makes of the sandbox, such as that of another machine."""
        self._runner, self._slots = place(self._sandbox), _SLOTS_ELSEWHERE

    def work(self, question: Question) -> NodeFn:
        """See `Strategy.work`. Raises: `BuildError` for malformed tests."""
        problem_of(question)
        return super().work(question)

    async def prepare(self, question: Question) -> Think:
        problem = problem_of(question)
        bench = ProgramBench(self._runner, problem, self._slots)
        await bench.check()
        task = CodeTask(problem, bench, question.system, self.options.answer_tokens)

        async def think(thread: ChatThread) -> Thought:
            return await self._thought(thread, task, question, await self.write(thread, task))

        return think

    async def write(self, thread: ChatThread, task: CodeTask) -> Sequence[ProgramDraft | None]:
        """The drafts; None for each whose thread failed."""
        raise NotImplementedError

    async def _thought(
        self,
        thread: ChatThread,
        task: CodeTask,
        question: Question,
        drafts: Sequence[ProgramDraft | None],
    ) -> Thought:
        written = [
            draft or ProgramDraft(None, 0, 0, 0, "", "failed", "its thread failed")
            for draft in drafts
        ]
        if not any(draft.text for draft in written):
            reasons = dict.fromkeys(draft.reason for draft in written if draft.reason)
            raise ReasoningError(f"{self.name}: nothing was written: {'; '.join(reasons)}")
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
        why, key = choice.selected.why, choice.selected.key
        return thread.finish(answer, why, key=key, samples=choice.samples, cut=cut)


def _is_cut(chosen: Sample) -> bool:
    """Whether a program may lack its end: it was cut off, and does not pass all tests."""
    return chosen.status == "length" and chosen.score != 1.0


def _samples(drafts: Sequence[ProgramDraft], problem: CodeProblem) -> tuple[Sample, ...]:
    tests = len(problem.tests)
    return tuple(draft.sample(index, tests) for index, draft in enumerate(drafts))


def _sandbox(name: str, settings: Mapping[str, Any]) -> CodeSandbox:
    try:
        limits = SandboxLimits(
            wall_s=settings["wall_s"],
            cpu_s=max(1, round(settings["wall_s"])),
            memory_bytes=settings["memory_mib"] * _MIB,
        )
        return CodeSandbox(limits, allow=settings["allow"])
    except (ValueError, SandboxError) as error:
        raise BuildError(f"{name}: {error}") from error
