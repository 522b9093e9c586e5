"""Node functions of model nodes: render the prompt, stream the answer, check it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft.core.errors import (
    CapabilityError,
    Failure,
    ModelOutputError,
    OutputTruncated,
    ReasoningError,
    WeftError,
)
from weft.core.generated_text import is_blank, without_thought
from weft.core.ids import item
from weft.core.ports import (
    BOUND_THOUGHT_HINT,
    THOUGHT_HINT,
    Delta,
    ModelClient,
    ModelRequest,
    ReasoningDelta,
    Sampling,
    Startable,
    TextDelta,
    UsageMeter,
    complete,
    only_thought,
)
from weft.core.schema import TypeSchema
from weft.core.values import Completion, JsonSchema, Message, ToolSpec
from weft.engine.graph.node import (
    Expand,
    Inputs,
    Node,
    NodeContext,
    NodeFn,
    Partial,
    Policy,
    Retry,
    best_effort,
)
from weft.engine.kinds import instances
from weft.engine.kinds.body import map_result
from weft.reasoning.thought import Thought
from weft.validation import read_answer, read_answer_async
from weft.workflow.compile.conversation import conversation_of
from weft.workflow.compile.repair import with_error
from weft.workflow.compile.seeds import inherited_seed
from weft.workflow.compile.services import Services, services_of
from weft.workflow.document.expressions import template, value_template
from weft.workflow.document.python_types import conform
from weft.workflow.document.spec.messages import NamedFile, messages_of, with_file_names
from weft.workflow.document.spec.nodes import ModelNode
from weft.workflow.document.unit import Unit, file_beside
from weft.workflow.runtime.models.declared_model import adapter_of
from weft.workflow.runtime.models.decoders import decoder_of
from weft.workflow.runtime.models.think import ThoughtModel


def answer_value(
    result: Any, context: NodeContext, schema: JsonSchema | None, kind: Any = None
) -> Any:
    """The answer of the `Thought` in `result`, typed if there is a schema, and fits `kind`.

    Logs the thought's cost and the reason for its end; the findings keep all of it.
    """

    def value(thought: Thought) -> Any:
        counts = thought.counts
        lost = f"; {thought.lost}" if thought.lost else ""
        context.log(
            f"{counts.total_tokens:,} tokens in {counts.threads} threads, "
            f"{counts.critical_path_tokens:,} one after another; {thought.why}{lost}"
        )
        services_of(context).findings[context.node] = thought
        answer = thought.answer if schema is None else read_answer(thought.answer, schema)
        answer = answer if kind is None else conform(kind, answer)
        return Partial(answer, cut_off(thought)) if thought.cut else answer

    return map_result(result, value)


def schema_of_answer(step: ModelNode, unit: Unit) -> JsonSchema | None:
    """The schema that a node's model is given; marked where a Python type checks the answer."""
    schema = step.output_schema
    typed = schema is not None and id(step) in unit.types.answers
    return TypeSchema(schema or {}) if typed else schema


def cut_off(thought: Thought) -> Failure:
    """The failure of an answer that was cut off."""
    why = f": {thought.why}" if thought.why else ""
    hint = "raise max_tokens, or the budget"
    return ReasoningError(f"the answer is cut off{why}", hint=hint).failure()


_NEXT_SEED = 1_000_003
"""The distance between the seeds of two attempts of one node."""
_GRACE_S = 1.0
"""The engine ends a late call itself; the server gets this much more time."""


def model(step: ModelNode, unit: Unit, retry: Retry | None) -> NodeFn:
    """Call the model once; or `samples` times in parallel, as nodes with their own seeds."""
    call = _NodeModelCall(step, unit)
    if step.samples is None:
        return call.node_fn(step.seed)
    count = step.samples
    policy = Policy(resource=step.model, spends=True, retry=retry, weight=step.weight)

    async def node_fn(context: NodeContext, inputs: Inputs) -> Expand:
        first = step.seed
        if first is None:
            inherited = inherited_seed(inputs, context.node)
            first = services_of(context).seed if inherited is None else inherited

        def sample(index: int, seed: int) -> Node:
            place = item(context.scope, index)
            return Node(place, call.node_fn(seed), (), inputs, policy=policy, kind="model")

        nodes = await instances(context, range(first, first + count), sample)
        results = tuple(node.id for node in nodes)
        return Expand(nodes, results, join=best_effort(counts="samples"), items=True)

    return node_fn


class _NodeModelCall:
    """The model calls of one node."""

    def __init__(self, step: ModelNode, unit: Unit) -> None:
        self._step = step
        self._unit = unit
        self._arguments = value_template(step.arguments)
        self._prompt = template(step.prompt)
        self._system = None if step.system is None else template(step.system)
        self._files: dict[str, NamedFile] = {}
        written = step.messages
        self._given = (
            None if written is None else value_template(with_file_names(written, self._files))
        )
        self._adapter = adapter_of(step.model, unit)
        self._decode = decoder_of(unit, step)
        is_checked = step.output_schema is not None or bool(step.tools)
        self._repairs = step.repair if is_checked else 0
        self._conversation = conversation_of(step, unit)
        self._kind = unit.types.answers.get(id(step))
        self._schema = schema_of_answer(step, unit)

    def node_fn(self, seed: int | None) -> NodeFn:
        async def node_fn(context: NodeContext, inputs: Inputs) -> Any:
            services = services_of(context)
            tools = await services.tools.offered(self._unit, self._step.tools)
            first = inherited_seed(inputs, context.node) if seed is None else seed
            own = None if first is None else seed_of(first, context)
            request = self._request(context, inputs, own, tools)
            client = services.models.client(self._unit, self._step.model)
            if isinstance(client, ThoughtModel):
                if self._conversation is not None:
                    hint = "give it `messages`, or use the model that it thinks with"
                    raise CapabilityError(f"{client.model} thinks: no `conversation`", hint=hint)
                thought = await client.work(request)(context, inputs)
                return answer_value(thought, context, self._step.output_schema, self._kind)
            if isinstance(client, Startable):
                await client.start(context.log)
            if request.sampling.temperature is None:
                await _log_default(client, services, context)

            if self._conversation is None:
                return (await self._repaired(context, client, request))[0]
            names = {**inputs, **self._arguments.render(inputs)}
            turn = await self._conversation.turn(context, names, request)
            value, completion = await self._repaired(context, client, turn.request)
            await turn.append(completion)
            return value

        return node_fn

    async def _repaired(
        self, context: NodeContext, client: ModelClient, request: ModelRequest
    ) -> tuple[Any, Completion]:
        """The node's value and the answer; where that does not fit, the model is asked again."""
        value, completion, problem = await self._answer(context, client, request)
        for number in range(1, 1 + self._repairs):
            if problem is None or context.tokens_left() == 0:
                break
            context.repairing(number, problem.failure())
            request = self._within(with_error(request, completion, problem), context)
            value, completion, problem = await self._answer(context, client, request)
        if problem is not None:
            raise problem
        return value, completion

    async def _answer(
        self, context: NodeContext, client: ModelClient, request: ModelRequest
    ) -> tuple[Any, Completion, ModelOutputError | None]:
        """The node's value and the answer, or the error that another answer may repair."""
        text: list[str] = []
        thought: list[str] = []

        def show(delta: Delta) -> None:
            if isinstance(delta, TextDelta):
                text.append(delta.text)
                context.stream(delta.text, len(delta.token_ids) or 1)
            elif isinstance(delta, ReasoningDelta):
                thought.append(delta.text)

        meter = UsageMeter(request)
        try:
            completion = await complete(client, request, show, meter)
        except ModelOutputError as error:
            written = Completion(
                "".join(text), "error", model=client.model, reasoning="".join(thought)
            )
            if isinstance(error, OutputTruncated) and only_thought(written):
                raise _empty_answer(written, cut_off=True) from error
            if request.schema is None or not text or not _is_repairable(error):
                raise
            return None, written, error
        finally:
            context.spend(meter.usage)
        context.decoded(completion.decoding)
        try:
            return await self._value(completion, request.tools), completion, None
        except ModelOutputError as error:
            if not _is_repairable(error):
                raise
            return None, completion, error

    def _request(
        self,
        context: NodeContext,
        inputs: Inputs,
        seed: int | None,
        tools: tuple[ToolSpec, ...] = (),
    ) -> ModelRequest:
        step = self._step
        names = {**inputs, **self._arguments.render(inputs)}
        request = ModelRequest(
            self._messages(names),
            sampling=Sampling(
                step.max_tokens,
                step.temperature,
                step.top_p,
                step.top_k,
                tuple(step.stop),
                seed,
                min_p=step.min_p,
                presence_penalty=step.presence_penalty,
                frequency_penalty=step.frequency_penalty,
                repetition_penalty=step.repetition_penalty,
                logit_bias=step.logit_bias,
                reasoning_effort=step.reasoning_effort,
                thinking_tokens=step.thinking_tokens,
            ),
            schema=self._schema,
            tools=tools,
            tool_choice=step.tool_choice,
            decode=self._decode,
            priority=context.priority,
            program=context.program if tools else context.program.last_call(),
            adapter=self._adapter,
            extra=step.extra_body or {},
        )
        return self._within(request, context)

    def _within(self, request: ModelRequest, context: NodeContext) -> ModelRequest:
        """`request` within what its budgets and its time leave."""
        left_s, most = context.time_left(), context.tokens_left()
        step = self._step
        sampling = replace(
            request.sampling, max_tokens=step.max_tokens, thinking_tokens=step.thinking_tokens
        )
        return replace(
            request,
            sampling=sampling if most is None else sampling.within(most),
            timeout_s=None if left_s is None else left_s + _GRACE_S,
        )

    def _messages(self, names: Mapping[str, Any]) -> tuple[Message, ...]:
        """The system text, the `messages`, and the prompt."""
        before = () if self._system is None else (Message("system", self._system.text_for(names)),)
        given: tuple[Message, ...] = ()
        if self._given is not None:
            files = self._files.items()
            media = {n: f.cls.from_file(file_beside(self._unit, f.path)) for n, f in files}
            given = messages_of(self._given.render({**names, **media}))
        if not self._step.prompt and given:
            return (*before, *given)
        return (*before, *given, Message("user", self._prompt.text_for(names)))

    async def _value(self, completion: Completion, tools: tuple[ToolSpec, ...]) -> Any:
        cut_off = completion.finish_reason == "length"
        calls = await _calls(completion, tools) if tools else []
        schema = self._schema
        empty = not calls and schema is None and is_blank(without_thought(completion.text))
        if (empty and not self._step.allow_empty) or (
            schema is not None and only_thought(completion)
        ):
            raise _empty_answer(completion, cut_off=cut_off)
        if not tools and schema is not None:  # complete JSON is the whole answer
            answer = await read_answer_async(completion.text, schema, cut_at=_cut_at(completion))
            return answer if self._kind is None else conform(self._kind, answer)
        value = {"text": completion.text, "tool_calls": calls} if tools else completion.text
        return Partial(value, _cut_off(completion)) if cut_off else value


async def _log_default(client: ModelClient, services: Services, context: NodeContext) -> None:
    """Log once in a run the model's default sampling, where its nodes set none."""
    if client.model in services.sampled:
        return
    services.sampled.add(client.model)
    try:
        sampling = (await client.capabilities()).sampling
    except WeftError:
        return  # the call itself reports the error
    if sampling is not None:
        context.log(f"{client.model} is sampled with {_sampled(sampling)}: its default")


def _is_repairable(error: ModelOutputError) -> bool:
    """Whether another answer to a longer prompt may do; one that was cut off would be again."""
    return error.retryable and not isinstance(error, OutputTruncated)


def _cut_at(completion: Completion) -> int | None:
    """The number of tokens at which max_tokens cut the answer off; None: it is whole."""
    return completion.usage.completion_tokens if completion.finish_reason == "length" else None


def _sampled(sampling: Sampling) -> str:
    named = ("temperature", "top_p", "top_k")
    values = ((name, getattr(sampling, name)) for name in named)
    return ", ".join(f"{name} {value:g}" for name, value in values if value is not None)


def _cut_off(completion: Completion) -> Failure:
    """The failure of an answer that was cut off."""
    tokens = completion.usage.completion_tokens
    after = f" after {tokens:,} tokens" if tokens else ""
    name = completion.model or "the model"
    hint = "raise `max_tokens`"
    return OutputTruncated(f"the answer of {name} is cut off{after}", hint=hint).failure()


def _empty_answer(completion: Completion, *, cut_off: bool) -> ModelOutputError:
    """The error of an answer without text."""
    name = completion.model or "the model"
    if cut_off:
        thought = completion.reasoning or not is_blank(completion.text)
        what = "its thought took all of its tokens" if thought else "it was cut off"
        hint = THOUGHT_HINT if thought else "raise max_tokens"
        return OutputTruncated(f"{name} answered nothing: {what}", hint=hint, retryable=False)
    if completion.reasoning or not is_blank(completion.text):
        what = f"{name} answered nothing after its thought"
        return ModelOutputError(what, hint=f"{BOUND_THOUGHT_HINT}; or try `retry`")
    hint = "where that is an answer, say `allow_empty: true`; else try `retry`"
    return ModelOutputError(f"{name} answered nothing", hint=hint)


def seed_of(first: int, context: NodeContext) -> int:
    """The seed of this attempt; with the same seed it would fail in the same way."""
    return first + (context.attempt - 1) * _NEXT_SEED


async def _calls(completion: Completion, tools: tuple[ToolSpec, ...]) -> list[Mapping[str, Any]]:
    specs = {spec.name: spec for spec in tools}
    calls: list[Mapping[str, Any]] = []
    for call in completion.tool_calls:
        if call.name not in specs:
            names = ", ".join(specs)
            raise ModelOutputError(f"the model calls {call.name!r}", hint=f"there is: {names}")
        what = f"what {call.name} is called with"
        parameters, cut_at = specs[call.name].parameters, _cut_at(completion)
        arguments = await read_answer_async(
            call.arguments or "{}", parameters, what=what, cut_at=cut_at
        )
        calls.append({"name": call.name, "arguments": arguments})
    return calls
