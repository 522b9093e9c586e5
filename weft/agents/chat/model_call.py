"""One model call as a node: streamed, retried, and ended when the text repeats itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.agents.chat.repetition import RepetitionDetector
from weft.core.errors import AgentError, ModelOutputError, ModelRequestError
from weft.core.ids import inside
from weft.core.ports import (
    BOUND_THOUGHT_HINT,
    THOUGHT_HINT,
    Capabilities,
    Delta,
    ModelClient,
    ModelRequest,
    Startable,
    TextDelta,
    UsageMeter,
    complete,
    only_thought,
    slots_of,
)
from weft.core.values import Completion, FinishReason
from weft.durability.calls.digest import identity
from weft.engine import Inputs, Node, NodeContext, NodeFn, Policy, Retry
from weft.engine.graph.content_digest import DigestTexts

_RETRY: Final = Retry()
_GRACE_S: Final = 1.0


class ModelGaveUp(AgentError):
    """A model wrote nothing usable, even after corrections."""


class _RepetitionFound(Exception):
    """The streamed text repeats itself."""


async def ready(context: NodeContext, model: ModelClient) -> Capabilities:
    """The capabilities of `model`, after starting it if needed. Raises: `ModelError`."""
    if isinstance(model, Startable):
        await model.start(context.log)
    return await model.capabilities()


async def ask(
    context: NodeContext,
    name: str,
    model: ModelClient,
    request: ModelRequest,
    texts: DigestTexts | None = None,
) -> Completion:
    """The model's answer to `request`, from the node `name` inside the scope of `context`.

    The text streams; a broken stream is retried. A text that repeats itself is ended, with the
    finish reason "error". An answer that does not fit the schema is returned with the finish reason
    "error" or "length". A schema that the model does not support is left out, and logged. `texts`
    caches digests of the conversation's earlier requests.

    Raises: `AgentError` with the node and its failure.
    """
    place = inside(context.scope, name)
    policy = Policy(spends=True, resource=slots_of(model), retry=_RETRY)
    digest = identity("model", slots_of(model), request, texts=texts)
    work = model_call_fn(model, request)
    context.append([Node(place, work, policy=policy, kind="model", identity=digest)])
    outcome = await context.outcome(place)
    if isinstance(outcome.value, Completion):
        return outcome.value
    failure = outcome.failure
    raise AgentError(
        f"{model.model} gave no answer: {failure or outcome.status}",
        node=place,
        hint="give it a larger budget" if outcome.status == "skipped" else None,
        retryable=failure is not None and failure.retryable,
    )


def model_call_fn(model: ModelClient, request: ModelRequest) -> NodeFn:
    """A node function whose value is the `Completion` of `ask`."""

    async def work(context: NodeContext, _: Inputs) -> Completion:
        try:
            return await _generate(context, model, request)
        except ModelRequestError as error:
            if request.schema is None:
                raise
            context.log(f"asked again without a schema: {error}")
            return await _generate(context, model, replace(request, schema=None))

    return work


async def _generate(context: NodeContext, model: ModelClient, request: ModelRequest) -> Completion:
    texts: list[str] = []
    repetition = RepetitionDetector()

    def show(delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            texts.append(delta.text)
            context.stream(delta.text, len(delta.token_ids) or 1)
            if repetition.feed(delta.text):
                raise _RepetitionFound

    sent = with_node_context(request, context)
    meter = UsageMeter(sent)
    try:
        completion = await complete(model, sent, show, meter)
    except _RepetitionFound:
        context.log("the answer is ended: it repeats itself")
        completion = Completion("".join(texts), "error", usage=meter.usage, model=model.model)
    except ModelOutputError as error:
        if request.schema is None:
            raise
        context.log(str(error))
        most, written = sent.sampling.most_tokens, meter.usage.completion_tokens
        why: FinishReason = "length" if most is not None and written >= most else "error"
        completion = Completion("".join(texts), why, usage=meter.usage, model=model.model)
    finally:
        context.spend(meter.usage)
    context.decoded(completion.decoding)
    return completion


def with_node_context(request: ModelRequest, context: NodeContext) -> ModelRequest:
    """`request` with its node's priority, program, time and token limits."""
    left, left_s = context.tokens_left(), context.time_left()
    return replace(
        request,
        sampling=request.sampling if left is None else request.sampling.within(left),
        priority=context.priority,
        program=context.program,
        # The engine ends a late call; the server's timeout only frees its resources.
        timeout_s=None if left_s is None else left_s + _GRACE_S,
    )


def is_costly(completion: Completion) -> bool:
    """Whether an unusable reply is corrected only once, because it was long."""
    return completion.finish_reason in ("length", "error")


def gave_up_error(context: NodeContext, last: Completion, problem: str, times: int) -> ModelGaveUp:
    """The error after `times` unusable replies in a row."""
    hint = "a larger model, or one that can be held to a schema, keeps to the form better"
    if only_thought(last):
        hint = BOUND_THOUGHT_HINT
    if last.finish_reason == "length":
        hint = f"it was cut off: {THOUGHT_HINT}"
    return ModelGaveUp(
        f"{last.model or 'the model'} wrote nothing that can be used {times} times in a row; the"
        f" last time: {problem}",
        node=context.node,
        hint=hint,
    )
