"""`use: think`: a model that answers by a reasoning strategy over another model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from weft.core.errors import (
    BuildError,
    CapabilityError,
    InputError,
    ModelUnavailable,
    ReasoningError,
)
from weft.core.events import (
    Event,
    Listener,
    NodeFinished,
    NodeRepairing,
    NodeRetrying,
    NodeStreamed,
    Outcome,
)
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
from weft.validation import read_answer
from weft.workflow.document.secrets import redactor_here
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models.composed import check_behind, thinker
from weft.workflow.runtime.models.declared_model import check_chat_only, declared_model
from weft.workflow.runtime.models.strategies import (
    check_thinking,
    check_typed,
    options_of,
    thinks_already,
)
from weft.workflow.runtime.results.answer_stream import AnswerStream
from weft.workflow.runtime.results.result import (
    ANSWER,
    FlowResult,
    caller_fault,
    error_of,
    no_answer_reason,
)
from weft.workflow.runtime.results.run_stream import RunStreams


class ThoughtRun:
    """One thought as an unrecorded run; `wait` carries it out.

    Raises, when it is made: `BuildError` for an empty question, or a schema that the strategy
    cannot satisfy.
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
        node_fn = self._typed(strategy.work(question))
        self._run = Run(
            Graph("think", [Node(ANSWER, node_fn, kind="think")], [ANSWER]),
            RunOptions(concurrency, deadline_s=deadline_s),
            run=run_id("think", {"question": question.text, "strategy": strategy.name}),
            clock=clock,
            listeners=listeners,
            redact=RecordRedactor(redactor_here()),
        )
        self.outcome = Outcome("cancelled")

    async def wait(self) -> FlowResult:
        """Run to the end. Without an answer, the result says why the output `answer` is missing."""
        result = await self._run.wait()
        self.outcome = result.outcomes[ANSWER]
        if self.outcome.ok:
            return FlowResult.of(result, {"answer": self._answer(self.outcome.value)}, {})
        return FlowResult.of(result, {}, {"answer": no_answer_reason(self.outcome)})

    @property
    def thought(self) -> Thought:
        """The run's thought. Raises: `ReasoningError` when there is no answer."""
        if isinstance(self.outcome.value, Thought):
            return self.outcome.value
        raise no_thought(self._strategy, self.outcome)

    def _typed(self, node_fn: NodeFn) -> NodeFn:
        """`node_fn`, which fails when its answer does not fit the schema."""

        def checked(thought: Thought) -> Thought:
            self._answer(thought)
            return thought

        async def typed(context: NodeContext, inputs: Inputs) -> Any:
            return map_result(await node_fn(context, inputs), checked)

        return node_fn if self._schema is None else typed

    def _answer(self, thought: Thought) -> Any:
        return thought.answer if self._schema is None else read_answer(thought.answer, self._schema)


def no_thought(strategy: str, outcome: Outcome) -> ReasoningError:
    """The error of a thought without an answer; `outcome` is that of its node."""
    failure = outcome.failure
    return ReasoningError(
        f"{strategy} came to no answer: {no_answer_reason(outcome)}",
        node=ANSWER,
        hint=None if failure is None else failure.hint,
        retryable=failure is not None and failure.retryable,
    )


class ThoughtModel:
    """Implements `ModelClient` and `Startable`: each call is a thought of `model` by `strategy`.

    The last message of the user is the question, with the conversation before it; system messages
    become the system prompt. Text of threads is streamed as reasoning, each thread when it has
    ended, then comes the answer; if one call writes exactly the answer, it is streamed as it is
    written. Of the sampling only temperature, `top_p`, seed and `thinking_tokens` apply;
    `max_tokens` bounds all generated tokens, reasoning included, and with `thinking_tokens` the
    sum of both does. The usage covers all threads, cancelled ones too. The caller that passed
    `model` closes it.

    Raises: `BuildError` for an unknown strategy, settings that it does not have, or a `model` that
    is itself a thinking model.
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
        """The same strategy over `around(model)`."""
        return ThoughtModel(around(self._client), self._strategy, self._options, name=self._name)

    @property
    def model(self) -> str:
        return self._name

    async def capabilities(self) -> Capabilities:
        base = await self._client.capabilities()
        typed = base.structured_output and STRATEGIES[self._strategy].typed
        return Capabilities(
            structured_output=typed,
            max_context_tokens=base.max_context_tokens,
            thinking=base.thinking,
        )

    async def start(self, show: Callable[[str], None] | None = None) -> None:
        if isinstance(self._client, Startable):
            await self._client.start(show)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `ModelClient`. Raises: also `InputError`, and `RunError`s that name the thread."""
        strategy, question = self._question(request)
        transcript = _Transcript(self._speaker)
        live = request.extra.get("stream") is not False
        answer_stream = AnswerStream({}, self._speaker if live else None)
        async with self._runs.start(
            lambda listener: ThoughtRun(
                strategy, question, (listener,), deadline_s=request.timeout_s
            )
        ) as stream:
            async for event in stream:
                if text := transcript.add(event):
                    yield ReasoningDelta(text)
                if text := answer_stream.take(event):
                    yield TextDelta(text)
            if stream.cancelled:
                raise self._is_closed()
            failure = stream.run.outcome.failure
            if failure is not None and not stream.run.outcome.ok:
                raise caller_fault(stream.result(), ANSWER) or error_of(failure, ANSWER)
            thought, usage = stream.run.thought, stream.result().usage
        answer = thought.answer
        finish: FinishReason = "length" if thought.cut else "stop"
        if text := answer_stream.rest(answer):
            yield TextDelta(text)
        reasoning = "".join(transcript.texts)
        yield Completion(answer, finish, usage=usage, model=self._name, reasoning=reasoning)

    def work(self, request: ModelRequest) -> NodeFn:
        """The thought about `request` as a node function, for a run that already executes.

        Its value is a `Thought`. Raises: what `generate` raises before it begins.
        """
        strategy, question = self._question(request)
        return strategy.work(question)

    async def aclose(self) -> None:
        await self._runs.aclose()

    def _question(self, request: ModelRequest) -> tuple[Strategy, Question]:
        self._check(request)
        options = _options(self._options, request.sampling)
        return make_strategy(self._strategy, self._client, options), question_of(request)

    def _check(self, request: ModelRequest) -> None:
        if self._runs.closed:
            raise self._is_closed()
        hint = "ask the model that it thinks with"
        typed = STRATEGIES[self._strategy].typed
        check_chat_only(request, f"{self._name} thinks", hint, schema=typed)
        for key in ("stop", "top_k", "min_p", "stop_token_ids", "reasoning_effort", *_SHIFTS):
            if getattr(request.sampling, key):
                raise CapabilityError(f"{self._name} thinks: no `{key}`", hint=hint)

    def _is_closed(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self._name} is closed")


_SHIFTS: Final = ("presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias")


def refuse_thinker(model: ModelClient) -> None:
    """Raise `CycleError` for a thinking model: each of its threads would be a tree of threads."""
    if isinstance(model, ThoughtModel):
        raise thinks_already(model.model)


def question_of(request: ModelRequest) -> Question:
    """A chat as a question. Raises: `InputError` unless it ends with a message of a user."""
    messages = [message for message in request.messages if message.role != "system"]
    system = "\n\n".join(m.content for m in request.messages if m.role == "system")
    if not messages or messages[-1].role != "user" or not messages[-1].content.strip():
        raise InputError("nobody asks anything", hint="end with a message of the role user")
    return Question(_with_conversation(messages), system, schema=request.schema)


def _with_conversation(messages: Sequence[Message]) -> str:
    *before, last = messages
    if not before:
        return last.content
    turns = "\n\n".join(f"{message.role}: {message.content}" for message in before)
    return f"The conversation so far:\n\n{turns}\n\nNow answer:\n\n{last.content}"


def _options(options: ThinkOptions, sampling: Sampling) -> ThinkOptions:
    if sampling.thinking_tokens is not None:
        longest = min(options.max_tokens, sampling.max_tokens or options.max_tokens)
        options = replace(options, thinking_tokens=sampling.thinking_tokens, max_tokens=longest)
    most = sampling.most_tokens
    return replace(
        options,
        budget=options.budget if most is None else min(most, options.cap),
        temperature=options.temperature if sampling.temperature is None else sampling.temperature,
        top_p=options.top_p if sampling.top_p is None else sampling.top_p,
        seed=options.seed if sampling.seed is None else sampling.seed,
    )


class _Transcript:
    """The text of threads, in the order in which they ended, without the answer."""

    def __init__(self, speaker: NodeId | None) -> None:
        self._speaker = speaker
        self.texts: list[str] = []
        self._writing: defaultdict[NodeId, list[str]] = defaultdict(list)

    def add(self, event: Event) -> str:
        """The text that is complete with `event`."""
        match event:
            case NodeStreamed() if event.node != self._speaker:
                self._writing[event.node].append(event.text)
            case NodeRepairing() | NodeRetrying():
                self._writing.pop(event.node, None)
            case NodeFinished():
                if text := "".join(self._writing.pop(event.node, ())):
                    self.texts.append(f"[{event.node.partition('/')[2]}] {text}\n\n")
                    return self.texts[-1]
        return ""


def check_made(unit: Unit, name: str) -> None:
    """Check the base model of `name`, not the strategy. Raises: `BuildError`."""
    spec = unit.document.models[name]
    check_behind(unit, name)
    if (other := thinker(unit, spec.model)) is not None:
        raise thinks_already(other)


def make(unit: Unit, name: str, client: Callable[[str], ModelClient]) -> ThoughtModel:
    """The model `name` of `unit`, over its base from `client`. Raises: `BuildError`."""
    check_made(unit, name)
    spec = unit.document.models[name]
    assert spec.think is not None
    options = options_of(unit, spec.think, seed=unit.document.run.seed)
    given = client(spec.model)
    refuse_thinker(given)
    base = declared_model(given, unit, spec.model)
    return ThoughtModel(base, spec.think.strategy, options, name=name)
