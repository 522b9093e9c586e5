"""A workflow as a model: a chat fills its inputs, and its answer is streamed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import Any

from weft.core.errors import InputError, ModelUnavailable
from weft.core.events import Listener, NodeRerouted
from weft.core.ids import NodeId, RunId
from weft.core.ports import (
    Capabilities,
    ModelClient,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
)
from weft.core.questions import AskingCompletion
from weft.core.values import Completion, FinishReason, Message, Usage
from weft.workflow.apps.asking import (
    ANSWERS,
    RUN,
    ContinuedRun,
    EndedRun,
    OpenRun,
    PastRun,
    asking_text,
    past_run,
)
from weft.workflow.apps.served import RecordingOptions, ServedFlow
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.inputs import CheckedInputs, check_inputs_async
from weft.workflow.document.spec.declarations import InputSpec
from weft.workflow.flow import Flow
from weft.workflow.runtime.models.declared_model import check_chat_only
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.results.answer_stream import (
    AnswerStream,
    answer_of,
    as_text,
    speaker_of,
    writers_of,
)
from weft.workflow.runtime.results.result import FlowResult, check_result
from weft.workflow.runtime.results.run_stream import RunStreams
from weft.workflow.runtime.run import FlowRun

_CONVERSATION = "messages"
_QUESTIONS = ("prompt", "question")


class ChatInputs:
    """The inputs that a chat fills.

    conversation  `messages`, if it takes a list: all messages, as {role, content}
    question      `prompt`, `question`, or else the only required text: the last user message
    """

    def __init__(self, document: WorkflowDocument) -> None:
        inputs = document.inputs
        listed = _CONVERSATION in inputs and _may_be(inputs[_CONVERSATION], "array")
        self.conversation = _CONVERSATION if listed else None
        named = [name for name in _QUESTIONS if name in inputs and _may_be(inputs[name], "string")]
        required = [
            name
            for name, declared in inputs.items()
            if declared.required and declared.root.get("type") == "string"
        ]
        only = required[0] if len(required) == 1 else None
        self.question = named[0] if named else only

    def of(self, messages: tuple[Message, ...], given: object = None) -> dict[str, Any]:
        """The inputs for `messages`; those `given` by name take precedence.

        Raises: `InputError` when a required text has no user message, or `given` is no mapping.
        """
        if given is not None and not isinstance(given, Mapping):
            raise InputError("`inputs` is not an object", hint='such as {"topic": "rivers"}')
        named = dict(given or {})
        values: dict[str, Any] = {}
        if self.conversation is not None:
            values[self.conversation] = [_turn(message) for message in messages]
        if self.question is not None and self.question not in named:
            values[self.question] = _last_question(messages)
        return {**values, **named}


def _may_be(declared: InputSpec, kind: str) -> bool:
    kinds = declared.root.get("type")
    return kinds is None or kinds == kind or (isinstance(kinds, list) and kind in kinds)


def _turn(message: Message) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        turn["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        turn["tool_call_id"] = message.tool_call_id
    return turn


def _last_question(messages: tuple[Message, ...]) -> str:
    for message in reversed(messages):
        if message.role == "user":
            return message.content
    raise InputError("nobody asks anything", hint="send a message of the role user")


EXTRA_FIELDS = frozenset({"inputs", "stream", RUN, ANSWERS})
"""The fields of `ModelRequest.extra` that it reads. `stream`: False sends the answer only when it
is complete, so that no retry of a node can contradict what was sent. `run` and `answers` continue a
run that asks."""

_SEEDS = 2**31


class FlowModel:
    """Implements `ModelClient` with runs of `flow`, any number at once.

    The chat fills inputs as `ChatInputs` says; others come from `extra["inputs"]` or have defaults.
    The answer is the output `answer` or `text`, or the only one; if it is exactly what one model
    node writes, it is streamed as it is written. If a model node in the answer is partial, the
    finish reason is "length". `progress` reports finished nodes as reasoning. Secrets in the answer
    are redacted. Of the sampling only the seed applies: the workflow sets how its models sample.

    `models` and `recording` as in `ServedFlow`. `make_listener`: a further one for each run. The id
    of a recorded run is passed to the function `extra["began"]`.

    A run that asks a person ends in an `AskingCompletion`. With `answers`, and recorded runs, the
    next message continues it, or a request with its id and answers, see `EXTRA_FIELDS`.
    """

    def __init__(
        self,
        flow: Flow,
        models: ModelSource | Mapping[str, ModelClient],
        *,
        progress: bool = False,
        make_listener: Callable[[], Listener] | None = None,
        recording: RecordingOptions | None = None,
        answers: bool = False,
    ) -> None:
        kept = answers and recording is not None and recording.when != "none"
        self._journal = recording.journal if kept and recording is not None else None
        self._served = ServedFlow(
            flow, models, recording, "a model", attended=self._journal is not None
        )
        self._flow = flow
        self._progress = progress
        self._make_listener = make_listener
        self.inputs = ChatInputs(flow.document)
        self._answer = answer_of(flow.document)
        self._speaker = speaker_of(flow.document)
        self._writers = writers_of(flow.document)
        self._runs = RunStreams()

    @property
    def model(self) -> str:
        return self._flow.name

    @property
    def streams(self) -> bool:
        """True when answers are streamed as they are written."""
        return self._speaker is not None

    async def capabilities(self) -> Capabilities:
        return Capabilities(streaming=self.streams)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `ModelClient`. Raises: also `InputError`, and `RunError`s that name the node."""
        self._check(request)
        live = request.extra.get("stream") is not False
        answer_stream = AnswerStream(self._flow.nodes, self._speaker if live else None)
        reasoning = sent = ""
        past = await self._past(request)
        if isinstance(past, OpenRun | EndedRun):
            again = await asyncio.to_thread(self._reply_again, past, request)
            yield TextDelta(again.text)
            yield again
            return
        start = await self._starter(request, past)
        writers = set(self._writers)
        async with self._runs.start(start) as stream:
            async for event in stream:
                if self._progress and (line := self._served.ended(event)):
                    reasoning += f"{line}\n"
                    yield ReasoningDelta(f"{line}\n")
                if isinstance(event, NodeRerouted) and event.node in writers:
                    writers.add(event.to)
                if text := answer_stream.take(event):
                    sent += text
                    yield TextDelta(text)
            if stream.cancelled:
                raise self._is_closed()
            result = stream.result()
            if result.questions:
                asked = stream.run.redacted([question.data() for question in result.questions])
                run = stream.run.id if stream.run.recorded else ""
                asking = self._asking(asked, run, result.usage, sent, reasoning)
                yield TextDelta(asking.text[len(sent) :])
                yield asking
                return
            answer = stream.run.redacted(self._answer_text(result))
            if text := answer_stream.rest(answer):
                yield TextDelta(text)
        yield self._completion(result, answer, writers, reasoning)

    def _completion(
        self, result: FlowResult, answer: str, writers: Iterable[NodeId], reasoning: str = ""
    ) -> Completion:
        ends = [result.outcomes.get(node) for node in writers]
        cut_off = any(end is not None and end.partial for end in ends)
        finish: FinishReason = "length" if cut_off else "stop"
        return Completion(answer, finish, usage=result.usage, model=self.model, reasoning=reasoning)

    def _reply_again(self, past: OpenRun | EndedRun, request: ModelRequest) -> Completion:
        """The reply of a run that nothing is done for. Raises: the reason why there is none."""
        if isinstance(past, OpenRun):
            questions = [question.data() for question in past.questions]
            return self._asking(questions, past.run, before=past.problem)
        _began(request, past.history.run)
        result = past.result(self._flow.document)
        return self._completion(result, self._answer_text(result), self._writers)

    async def aclose(self) -> None:
        await self._runs.aclose()

    def _check(self, request: ModelRequest) -> None:
        if self._runs.closed:
            raise self._is_closed()
        hint = "the workflow itself says what its models are asked"
        check_chat_only(request, f"{self.model} is a workflow", hint)

    def _asking(
        self,
        questions: Sequence[Mapping[str, Any]],
        run: str,
        usage: Usage | None = None,
        before: str = "",
        reasoning: str = "",
    ) -> AskingCompletion:
        text = asking_text(questions, run, self._journal is not None)
        return AskingCompletion(
            f"{before}\n{text}" if before else text,
            usage=usage or Usage(),
            model=self.model,
            reasoning=reasoning,
            run=run,
            questions=tuple(questions),
        )

    async def _past(self, request: ModelRequest) -> PastRun | None:
        """The run that a request is about; None: it begins one. Raises: as `past_run`."""
        if self._journal is not None:
            return await asyncio.to_thread(past_run, request, self._flow.name, self._journal)
        if not request.extra.keys().isdisjoint((RUN, ANSWERS)):
            hint = "serve it with `answers` and a journal"
            raise InputError(f"runs of {self.model} cannot be continued here", hint=hint)
        return None

    async def _starter(
        self, request: ModelRequest, past: ContinuedRun | None
    ) -> Callable[[Listener], FlowRun]:
        """What prepares the run of a request, or the next part of one. Raises: `InputError`."""
        if past is not None:
            return lambda on: self._start(request, past, on)
        inputs = self.inputs.of(request.messages, request.extra.get("inputs"))
        checked = await check_inputs_async(self._flow.document, inputs)
        return lambda on: self._start(request, checked, on)

    def _start(
        self, request: ModelRequest, begin: CheckedInputs | ContinuedRun, listener: Listener
    ) -> FlowRun:
        deadline_s = self._flow.document.run.deadline
        times = [limit for limit in (deadline_s, request.timeout_s) if limit is not None]
        seed = request.sampling.seed
        others = () if self._make_listener is None else (self._make_listener(),)
        deadline = max(min(times), 0.0) if times else None
        if isinstance(begin, ContinuedRun):
            run = self._served.resume(begin, (listener, *others), deadline=deadline)
        else:
            seed = None if seed is None else seed % _SEEDS
            run = self._served.start(begin, (listener, *others), deadline=deadline, seed=seed)
        if run.recorded:
            _began(request, run.id)
        return run

    def _answer_text(self, result: FlowResult) -> str:
        """The answer of a run. Raises: the reason why there is none."""
        wanted = list(self._flow.outputs) if self._answer is None else [self._answer]
        check_result(self._flow.document, result, wanted)
        if self._answer is None:
            return as_text(dict(result.outputs))
        return as_text(result.outputs[self._answer])

    def _is_closed(self) -> ModelUnavailable:
        return ModelUnavailable(f"{self.model} is closed")


def _began(request: ModelRequest, run: RunId) -> None:
    began = request.extra.get("began")
    if began is not None:
        began(run)
