"""Workers that write in parallel about one question, and one answer from their texts.

Where the model's engine has concurrent attention, they see one another's tokens as they are
written; elsewhere they write alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from weft.core.errors import BuildError, ReasoningError
from weft.core.ids import inside
from weft.core.ports import ConcurrentAttention, Delta, ModelClient, ModelRequest, TextDelta
from weft.engine import Node
from weft.reasoning.answers import answer_key
from weft.reasoning.chat.call import CallProgress, Generation
from weft.reasoning.chat.strategy import ChatStrategy
from weft.reasoning.chat.thread import ChatThread, Job
from weft.reasoning.options import ThinkOptions
from weft.reasoning.parsing import fence
from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.thought import Sample, SampleStatus, Thought

_BOX: Final = "\\boxed{"


class BoxScanner:
    r"""Finds the end of a non-empty \boxed{...} in a text that is fed in pieces of any size.

    Of nested boxes the innermost counts, since it ends first.
    """

    def __init__(self) -> None:
        self._begun = 0  # how much of `_BOX` the text ends with
        self._depth = 0  # of braces inside a box; 0: outside
        self._filled = False

    def feed(self, text: str) -> bool:
        """Whether a non-empty box ends in `text`."""
        found = False
        for character in text:
            found = self._ends(character) or found
        return found

    def _ends(self, character: str) -> bool:
        """Whether `character` ends a non-empty box."""
        self._begun = self._begun + 1 if character == _BOX[self._begun] else character == _BOX[0]
        if self._begun == len(_BOX):
            self._begun, self._depth, self._filled = 0, 1, False
            return False
        if not self._depth:
            return False
        self._depth += (character == "{") - (character == "}")
        if self._depth:
            self._filled = self._filled or not character.isspace()
            return False
        return self._filled


_ALONE: Final = """\
You are worker {number} of {count} on this task. Each works by itself and sees nothing of the
others. Where the task can be divided, do the part that has your number; else try an approach of
your own. Put the final answer into \\boxed{{}} once you have found it."""
_ANSWER: Final = """\
Several workers have written about this task at the same time. What they wrote is below; some of it
may be unfinished or wrong. Answer the task now from what they found, as briefly as it allows. A
final answer that is a value belongs into \\boxed{}."""
_LOST: Final = "the workers did not see one another: {model} does not take the layout {layout!r}"
_BYTES_PER_TOKEN: Final = 2


@dataclass(frozen=True, slots=True)
class WorkerGroupSpec:
    """The prompt and attention of the workers of a group.

    All read the question with `rules`, and begin their answers with `lead`; `attention` maps a
    group name and a worker's index to its place in the group.
    """

    rules: str
    lead: str
    attention: Callable[[str, int], ConcurrentAttention]


@dataclass(slots=True)
class _GroupWorker:
    """One worker, while it writes and afterwards."""

    index: int
    thread: ChatThread
    spent: CallProgress = field(default_factory=CallProgress)
    reply: Generation | None = None
    found: bool = False
    boxes: BoxScanner = field(default_factory=BoxScanner)

    @property
    def text(self) -> str:
        return "".join(self.spent.text)

    @property
    def sample(self) -> Sample:
        status: SampleStatus = "cancelled"
        if self.found:
            status = "finished"
        elif self.reply is not None:
            status = "failed" if self.reply.status == "refused" else self.reply.status
        key = answer_key(self.text, status == "finished") if self.text else None
        return Sample(self.index, self.text, key, self.spent.tokens, status)


class WorkerGroupStrategy(ChatStrategy):
    """Answers with `workers` that write at most `options.max_tokens` each.

    The first boxed answer ends the run, unless the answer has a schema. Without a boxed answer the
    model reads all texts and answers from them.

    Raises: `BuildError` for fewer than one worker, or more than the width.
    """

    def __init__(
        self,
        name: str,
        model: ModelClient,
        options: ThinkOptions,
        workers: int,
        spec: WorkerGroupSpec,
    ) -> None:
        if not 1 <= workers <= options.width:
            raise BuildError(
                f"{name} cannot have {workers} workers side by side",
                hint=f"from 1 to the width, which is {options.width}",
            )
        self.name = name
        super().__init__(model, replace(options, settings={}))
        self._count = workers
        self._spec = spec

    async def think(self, thread: ChatThread, question: Question) -> Thought:
        layout = self._spec.attention("", 0).layout
        sees = layout in (await self.model.capabilities()).layouts
        workers = await self._write(thread, question, sees=sees)
        answer, why, cut = await self._answer(thread, question, workers)
        key = answer_key(answer, whole=not cut)
        return thread.finish(
            answer,
            why,
            key=key,
            samples=tuple(worker.sample for worker in workers),
            fidelity="exact" if sees else "approximate",
            lost="" if sees else _LOST.format(model=self.model.model, layout=layout),
            cut=cut and key is None,
        )

    async def _write(
        self, root: ChatThread, question: Question, *, sees: bool
    ) -> list[_GroupWorker]:
        """Run the workers until all have ended, or one has found the answer."""
        place = inside(root.context.scope, "workers")
        threads = root.branch([str(index) for index in range(self._count)], role="worker")
        workers = [_GroupWorker(index, thread) for index, thread in enumerate(threads)]
        found = asyncio.Event()
        make = self._concurrent if sees else self._alone
        nodes = [
            worker.thread.node(place, make(root, worker, question, found)) for worker in workers
        ]
        root.context.append(nodes)
        async with asyncio.TaskGroup() as group:
            stopper = group.create_task(_stop(root, nodes, found))
            for node in nodes:
                await root.context.outcome(node.id)
            stopper.cancel()
        return workers

    def _concurrent(
        self, root: ChatThread, worker: _GroupWorker, question: Question, found: asyncio.Event
    ) -> Job[None]:
        program, scope = root.context.program, root.context.scope
        place = self._spec.attention(f"{program.id} {scope}", worker.index)

        def amend(request: ModelRequest) -> ModelRequest:
            sampling = replace(request.sampling, thinking_tokens=None)  # all they write is seen
            return replace(request, attention=place, sampling=sampling)

        return self._job(worker, question, found, self._spec.rules, self._spec.lead, amend)

    def _alone(
        self, _: ChatThread, worker: _GroupWorker, question: Question, found: asyncio.Event
    ) -> Job[None]:
        rules = _ALONE.format(number=worker.index + 1, count=self._count)
        return self._job(worker, question, found, rules)

    def _job(
        self,
        worker: _GroupWorker,
        question: Question,
        found: asyncio.Event,
        rules: str,
        lead: str = "",
        amend: Callable[[ModelRequest], ModelRequest] | None = None,
    ) -> Job[None]:
        def watch(spent: CallProgress, delta: Delta) -> None:
            worker.spent = spent
            if question.schema is not None or not isinstance(delta, TextDelta):
                return
            if len(spent.text) == 1:  # the first piece, of a further attempt too
                worker.boxes = BoxScanner()
            if worker.boxes.feed(delta.text) and not found.is_set():
                worker.found = True
                found.set()

        async def write(thread: ChatThread) -> None:
            worker.reply = await thread.ask(
                "write",
                conversation(question, rules, question_text(question)),
                max_tokens=self._share,
                amend=amend,
                watch=watch,
                lead=lead,
            )
            thread.returns(worker.text)

        return write

    @property
    def _share(self) -> int:
        """The tokens that a worker may write; the rest of the budget is for the answer."""
        options = self.options
        share = max(1, (options.cap - options.kept) // self._count)
        path_left = options.path_left(options.kept)
        return min(options.max_tokens, share if path_left is None else min(share, path_left))

    async def _answer(
        self, root: ChatThread, question: Question, workers: Sequence[_GroupWorker]
    ) -> tuple[str, str, bool]:
        """The answer, its origin in words, and whether it is cut off."""
        for worker in workers:
            if worker.found:
                return worker.text.strip(), f"worker {worker.index} found an answer", False
        wrote = [worker for worker in workers if worker.text.strip()]
        reasons = {worker.reply.reason: None for worker in workers if worker.reply is not None}
        if not wrote:
            hints = (worker.reply.hint for worker in workers if worker.reply is not None)
            raise ReasoningError(
                f"no worker wrote anything: {'; '.join(reasons)}",
                hint=next(filter(None, hints), None),
            )
        reply = await root.ask(
            "answer",
            conversation(question, _ANSWER, await self._shown(root, question, wrote)),
            purpose="conclusion",
            max_tokens=self.options.answer_tokens,
            schema=question.schema,
            temperature=0.0,
        )
        if reply.ok:
            why = f"asked for the answer after {len(wrote)} workers had written"
            return reply.text, why, reply.cut
        longest = max(wrote, key=lambda worker: len(worker.text))
        cut = longest.reply is None or not longest.reply.ok or longest.reply.cut
        return longest.text.strip(), f"what worker {longest.index} wrote: {reply.reason}", cut

    async def _shown(
        self, root: ChatThread, question: Question, wrote: Sequence[_GroupWorker]
    ) -> str:
        """The question and the end of each worker's text, as far as there is room."""
        text = question_text(question)
        used = await root.measure(_ANSWER + question.system + text)
        room = max(0, root.window - self.options.answer_tokens - used)
        most = _BYTES_PER_TOKEN * room // len(wrote)
        parts = (worker.text.strip()[-most:] if most else "" for worker in wrote)
        return "\n\n".join((text, *map(fence, parts)))


async def _stop(root: ChatThread, nodes: Sequence[Node], found: asyncio.Event) -> None:
    await found.wait()
    for node in nodes:
        root.context.cancel(node.id, "one of the workers has found an answer")
