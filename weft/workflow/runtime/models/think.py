"""`use: think`: a model that answers by a strategy, in threads over another model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from weft.core.errors import (
    BuildError,
    CapabilityError,
    InputError,
    ModelUnavailable,
    ReasoningError,
)
from weft.core.events import Event, Listener, NodeFinished, NodeRetrying, NodeStreamed, Outcome
from weft.core.ids import NodeId, inside, run_id
from weft.core.ports import (
    Capabilities,
    Clock,
    ModelClient,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    Sampling,
    Startable,
    TextDelta,
)
from weft.core.values import Completion, FinishReason, Message
from weft.durability.calls import RecordRedactor
from weft.engine import Graph, Inputs, Node, NodeContext, NodeFn, Run, RunOptions
from weft.engine.kinds.body import map_result
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.strategies import STRATEGIES, make_strategy
from weft.reasoning.strategy import Strategy
from weft.reasoning.thought import Thought
from weft.workflow.document.secrets import redactor_here
from weft.workflow.document.spec.schemas import parse_answer
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models.composed import check_behind, thinker
from weft.workflow.runtime.models.declared_model import check_chat_only, declared_model
from weft.workflow.runtime.models.strategies import (
    check_thinking,
    check_typed,
    options_of,
    thinks_already,
)
from weft.workflow.runtime.results.result import (
    ANSWER,
    FlowResult,
    caller_fault,
    error_of,
    no_answer_reason,
)
from weft.workflow.runtime.results.stream import AnswerStream, RunStreams


class ThoughtRun:
    """One thought as a run of its own, which nobody records; `wait` carries it out.

    Raises, when it is made: `BuildError` for an empty question, or a schema that the strategy
    cannot keep to.
    """

    def __init__(
        self,
        strategy: Strategy,
        question: Question,
        listeners: Iterable[Listener] = (),
        *,
        concurrency: int | None = None,
        deadline_s: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        if not question.text.strip():
            raise BuildError("the question is empty", hint='weft think "why ...?"')
        check_typed(strategy.name, question.schema)
        self._strategy = strategy.name
        self._schema = question.schema
        work = self._typed(strategy.work(question))
        self._run = Run(
            Graph("think", [Node(ANSWER, work, kind="think")], [ANSWER]),
            RunOptions(concurrency, deadline_s=deadline_s),
            run=run_id("think", {"question": question.text, "strategy": strategy.name}),
            clock=clock,
            listeners=listeners,
            redact=RecordRedactor(redactor_here()),
        )
        self.outcome = Outcome("cancelled")

    async def wait(self) -> FlowResult:
        """Run to the end. The output `answer` is missing when there is none, and says why."""
        result = await self._run.wait()
        self.outcome = result.outcomes[ANSWER]
        if self.outcome.ok:
            return FlowResult.of(result, {"answer": self._answer(self.outcome.value)}, {})
        return FlowResult.of(result, {}, {"answer": no_answer_reason(self.outcome)})

    @property
    def thought(self) -> Thought:
        """What came of it. Raises: `ReasoningError` when there is no answer."""
        if isinstance(self.outcome.value, Thought):
            return self.outcome.value
        raise no_thought(self._strategy, self.outcome)

    def _typed(self, work: NodeFn) -> NodeFn:
        """`work`, which fails with an answer that does not fit the schema."""

        def checked(thought: Thought) -> Thought:
            self._answer(thought)
            return thought

        async def typed(context: NodeContext, inputs: Inputs) -> Any:
            return map_result(await work(context, inputs), checked)

        return work if self._schema is None else typed

    def _answer(self, thought: Thought) -> Any:
        return parse_answer(thought.answer, self._schema)


def no_thought(strategy: str, outcome: Outcome) -> ReasoningError:
    """The error of a thought that came to no answer; `outcome` is that of its node."""
    failure = outcome.failure
    return ReasoningError(
        f"{strategy} came to no answer: {no_answer_reason(outcome)}",
        node=ANSWER,
        retryable=failure is not None and failure.retryable,
    )


class ThoughtModel:
    """Implements `ModelClient` and `Startable`: each call is a thought of `model` by `strategy`.

    The last words of the user are the question, with the conversation before them; system messages
    are what the model is told. What threads write comes as reasoning, each when it has ended, then
    the answer; where one call writes exactly that, it is streamed as it is written. Of the sampling
    count the temperature, `top_p` and the seed; `max_tokens` bounds all that is generated,
    reasoning included. The usage is that of all threads, cancelled ones too.
    `model` is closed by whoever gives it.

    Raises: `BuildError` for a strategy that is not there, settings that it does not have, or a
    `model` that thinks already.
    """

    def __init__(
        self,
        model: ModelClient,
        strategy: str,
        options: ThinkOptions | None = None,
        *,
        name: str | None = None,
    ) -> None:
        refuse_thinker(model)
        self._client = model
        self._strategy = strategy
        self._options = options or ThinkOptions()
        check_thinking(strategy, self._options)
        self._name = name or f"{strategy}:{model.model}"
        speaker = STRATEGIES[strategy].speaker
        self._speaker = inside(ANSWER, speaker) if speaker else None
        self._runs = RunStreams()

    def over(self, around: Callable[[ModelClient], ModelClient]) -> ThoughtModel:
        """The same thinking, with what `around` makes of its model."""
        return ThoughtModel(around(self._client), self._strategy, self._options, name=self._name)

    @property
    def model(self) -> str:
        return self._name

    async def capabilities(self) -> Capabilities:
        there = await self._client.capabilities()
        typed = there.structured_output and STRATEGIES[self._strategy].typed
        return Capabilities(structured_output=typed, max_context_tokens=there.max_context_tokens)

    async def start(self, show: Callable[[str], None] | None = None) -> None:
        if isinstance(self._client, Startable):
            await self._client.start(show)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `ModelClient`. Raises: also `InputError`, and `RunError`s that name the thread."""
        strategy, question = self._asked(request)
        told = _Transcript(self._speaker)
        live = request.extra.get("stream") is not False
        speech = AnswerStream({}, self._speaker if live else None)
        async with self._runs.start(
            lambda listener: ThoughtRun(
                strategy, question, (listener,), deadline_s=request.timeout_s
            )
        ) as stream:
            async for event in stream.events():
                if text := told.of(event):
                    yield ReasoningDelta(text)
                if text := speech.take(event):
                    yield TextDelta(text)
            if stream.cancelled:
                raise self._is_closed()
            failure = stream.run.outcome.failure
            if failure is not None and not stream.run.outcome.ok:
                raise caller_fault(stream.result, ANSWER) or error_of(failure, ANSWER)
            thought, usage = stream.run.thought, stream.result.usage
        answer = thought.answer
        finish: FinishReason = "length" if thought.cut else "stop"
        if text := speech.rest(answer):
            yield TextDelta(text)
        yield Completion(
            answer, finish, usage=usage, model=self._name, reasoning="".join(told.said)
        )

    def work(self, request: ModelRequest) -> NodeFn:
        """The thought about `request` as the work of a node, for runs that are under way already.

        Its value is a `Thought`. Raises: what `generate` raises before it begins.
        """
        strategy, question = self._asked(request)
        return strategy.work(question)

    async def aclose(self) -> None:
        await self._runs.aclose()

    def _asked(self, request: ModelRequest) -> tuple[Strategy, Question]:
        self._check(request)
        options = _options(self._options, request.sampling)
        return make_strategy(self._strategy, self._client, options), question_of(request)

    def _check(self, request: ModelRequest) -> None:
        if self._runs.closed:
            raise self._is_closed()
        hint = "ask the model that it thinks with"
        typed = STRATEGIES[self._strategy].typed
        check_chat_only(request, f"{self._name} thinks", hint, schema=typed)
        for key in ("stop", "top_k", "min_p", "stop_token_ids"):
            if getattr(request.sampling, key):
                raise CapabilityError(f"{self._name} thinks: no `{key}`", hint=hint)

    def _is_closed(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self._name} is closed")


def refuse_thinker(model: ModelClient) -> None:
    """Raise `CycleError` when `model` thinks already: every thread would be a tree of its own."""
    if isinstance(model, ThoughtModel):
        raise thinks_already(model.model)


def question_of(request: ModelRequest) -> Question:
    """A chat as a question. Raises: `InputError` when nobody asks anything."""
    said = [message for message in request.messages if message.role != "system"]
    system = "\n\n".join(m.content for m in request.messages if m.role == "system")
    if not said or said[-1].role != "user" or not said[-1].content.strip():
        raise InputError("nobody asks anything", hint="end with a message of the role user")
    return Question(_with_conversation(said), system, schema=request.schema)


def _with_conversation(said: Sequence[Message]) -> str:
    *before, last = said
    if not before:
        return last.content
    turns = "\n\n".join(f"{message.role}: {message.content}" for message in before)
    return f"The conversation so far:\n\n{turns}\n\nNow answer:\n\n{last.content}"


def _options(options: ThinkOptions, sampling: Sampling) -> ThinkOptions:
    most = sampling.max_tokens
    return replace(
        options,
        budget=options.budget if most is None else min(most, options.cap),
        temperature=options.temperature if sampling.temperature is None else sampling.temperature,
        top_p=options.top_p if sampling.top_p is None else sampling.top_p,
        seed=options.seed if sampling.seed is None else sampling.seed,
    )


class _Transcript:
    """What threads wrote, one after another in the order in which they ended; not the answer."""

    def __init__(self, speaker: NodeId | None) -> None:
        self._speaker = speaker
        self.said: list[str] = []
        self._writing: defaultdict[NodeId, list[str]] = defaultdict(list)

    def of(self, event: Event) -> str:
        """What there is to tell with `event`."""
        match event:
            case NodeStreamed() if event.node != self._speaker:
                self._writing[event.node].append(event.text)
            case NodeRetrying():
                self._writing.pop(event.node, None)
            case NodeFinished():
                if text := "".join(self._writing.pop(event.node, ())):
                    self.said.append(f"[{event.node.partition('/')[2]}] {text}\n\n")
                    return self.said[-1]
        return ""


def check_made(unit: Unit, name: str) -> None:
    """Check what the model `name` thinks with; not the strategy. Raises: `BuildError`."""
    spec = unit.document.models[name]
    check_behind(unit, name)
    if (other := thinker(unit, spec.model)) is not None:
        raise thinks_already(other)


def make(unit: Unit, name: str, client: Callable[[str], ModelClient]) -> ThoughtModel:
    """The model `name` of `unit`, over the one that `client` gives. Raises: `BuildError`."""
    check_made(unit, name)
    spec = unit.document.models[name]
    assert spec.think is not None
    options = options_of(unit, spec.think, seed=unit.document.run.seed)
    given = client(spec.model)
    refuse_thinker(given)
    base = declared_model(given, unit, spec.model)
    return ThoughtModel(base, spec.think.strategy, options, name=name)
