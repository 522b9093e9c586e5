"""One model call with a fresh prompt, as a node function.

The token limit covers all attempts: tokens of an attempt that broke off count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from weft.core.errors import CapabilityError, ModelOutputError, ModelRequestError
from weft.core.events import Outcome
from weft.core.generated_text import THOUGHT_ENDS, THOUGHTS, is_blank, without_thought
from weft.core.ports import (
    BOUND_THOUGHT_HINT,
    THOUGHT_HINT,
    Delta,
    ModelClient,
    ModelRequest,
    TextDelta,
    Tokenizing,
    UsageMeter,
    complete,
)
from weft.core.values import Completion, Message, Usage
from weft.engine import Inputs, NodeContext

Purpose: TypeAlias = Literal["answer", "step", "probe", "conclusion"]
"""What a call is for.

answer      an answer to the question; it thinks as the options say
step        what a strategy needs on the way, which does not think
probe       a step whose first words are enough, so that it may be cut; likewise
conclusion  the answer from what others have written; it thinks only where the options say so
"""

_GRACE_S: Final = 1.0
_BYTES_PER_TOKEN: Final = 2


@dataclass(slots=True)
class CallProgress:
    """Tokens, usage and text of a call so far. `kept` of its `tokens` are the answer's."""

    tokens: int = 0
    kept: int = 0
    usage: Usage = field(default_factory=Usage)
    text: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)


Watch = Callable[["CallProgress", Delta], None]
"""Receives each piece of an answer, and the progress of its call; must be fast."""


class ChatCall:
    """A call of `model` with `request`, for at most `request.sampling.most_tokens` tokens.

    The value of its node is the `Completion`. An answer that does not fit the schema is returned
    with the finish reason "error" or "length"; a schema that the model refuses is left out. `spent`
    can be read at any time; `watch` receives each piece.
    """

    def __init__(
        self, model: ModelClient, request: ModelRequest, watch: Watch | None = None
    ) -> None:
        self.spent = CallProgress()
        self._watch = watch
        self._model = model
        self._request = request

    async def work(self, context: NodeContext, _: Inputs) -> Completion:
        """The node function. Raises: `ModelError`."""
        try:
            return await self._call(context, self._request)
        except ModelRequestError as error:
            if self._request.schema is None:
                raise
            context.log(f"asked again without a schema: {error}")
            return await self._call(context, replace(self._request, schema=None))

    async def _call(self, context: NodeContext, request: ModelRequest) -> Completion:
        spent = self.spent
        left = (request.sampling.most_tokens or 1) - spent.tokens
        if left < 1:
            raise ModelRequestError("the tokens of this call were spent on attempts that broke off")
        sent = situated(request, context, left)
        spent.text.clear()
        spent.token_ids.clear()
        before = spent.tokens

        def show(delta: Delta) -> None:
            tokens = len(getattr(delta, "token_ids", ())) or 1
            spent.tokens += tokens
            if isinstance(delta, TextDelta):
                spent.text.append(delta.text)
                spent.token_ids.extend(delta.token_ids)
                context.stream(delta.text, tokens)
            if self._watch is not None:
                self._watch(spent, delta)

        meter = UsageMeter(sent)
        try:
            completion = await complete(self._model, sent, show, meter)
            context.decoded(completion.decoding)
        except ModelOutputError as error:
            if request.schema is None:
                raise
            context.log(str(error))
            cut = meter.usage.completion_tokens >= (sent.sampling.most_tokens or 0)
            completion = Completion("".join(spent.text), "length" if cut else "error")
        finally:
            spent.tokens = before + (meter.usage.completion_tokens or spent.tokens - before)
            spent.usage += meter.usage
            context.spend(meter.usage)
        spent.kept = spent.tokens - before
        return completion


def situated(request: ModelRequest, context: NodeContext, most: int) -> ModelRequest:
    """`request` with its node's priority, program and time limit, for at most `most` tokens."""
    left = context.tokens_left()
    if left is not None:
        most = min(most, max(1, left))
    left_s = context.time_left()
    return replace(
        request,
        sampling=request.sampling.within(most),
        priority=context.priority,
        program=context.program,
        timeout_s=None if left_s is None else left_s + _GRACE_S,
    )


async def encode_prompt(
    model: ModelClient, messages: tuple[Message, ...], chat_template_kwargs: Mapping[str, Any]
) -> tuple[int, ...]:
    """`messages` as a prompt in which their text cannot become a special token.

    Empty where the model cannot tokenize: its server then builds the prompt. Raises: `ModelError`.
    """
    if not isinstance(model, Tokenizing) or not (await model.capabilities()).prompt_token_ids:
        return ()
    try:
        return await model.encode_chat(messages, chat_template_kwargs=chat_template_kwargs)
    except CapabilityError:
        return ()


async def count_tokens(model: ModelClient, text: str) -> int:
    """The number of tokens of `text`; an upper estimate where the model cannot tokenize.

    Raises: `ModelError`.
    """
    if isinstance(model, Tokenizing):
        try:
            return len(await model.encode(text))
        except CapabilityError:
            pass
    return estimate(text)


def estimate(*texts: str) -> int:
    """An upper estimate of the tokens of `texts` together."""
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return math.ceil(size / _BYTES_PER_TOKEN)


def prompt_estimate(messages: Sequence[Message]) -> int:
    """`estimate` for a conversation."""
    return estimate(*(message.content for message in messages))


@dataclass(frozen=True, slots=True)
class Generation:
    """The model's answer to one request.

    finished   it is complete
    length     it was cut off at its token limit
    failed     the call failed, or its prompt fills the window; `text` is what came before
    refused    the call was not made: no tokens are left for it

    `text` lacks the reasoning that some models write before their answer. `reason` explains an
    empty answer. `thinking`: the model thought, and wrote no answer.
    """

    text: str
    status: Literal["finished", "length", "failed", "refused"] = "finished"
    tokens: int = 0
    reason: str = ""
    thinking: bool = False

    @property
    def ok(self) -> bool:
        """Whether there is an answer, complete or cut off."""
        return self.status in ("finished", "length") and bool(self.text)

    @property
    def cut(self) -> bool:
        """Whether the answer was cut off at its token limit."""
        return self.status == "length"

    @property
    def hint(self) -> str | None:
        """What to do where there is no answer, as far as it is known."""
        if self.cut:
            return THOUGHT_HINT
        return BOUND_THOUGHT_HINT if self.thinking else None


def generation_of(
    outcome: Outcome, spent: CallProgress, lead: str = "", opened: str = ""
) -> Generation:
    """The answer of a call whose node ended with `outcome`, after it had `spent`.

    `lead`: the beginning of the answer, which the model continued. `opened`: the beginning of its
    thought in the prompt, where the client does not separate thoughts.
    """
    completion = outcome.value
    if isinstance(completion, Completion):
        status: Literal["finished", "length"] = (
            "length" if completion.finish_reason == "length" else "finished"
        )
        text = _answer(lead or ("" if completion.reasoning else opened), completion.text)
        why = "" if text else _why_nothing(completion, opened)
        thinking = not text and _thought(completion, opened)
        return Generation(text, status, spent.tokens, why, thinking)
    why = str(outcome.failure or f"the call was {outcome.status}")
    return Generation(_answer(lead or opened, "".join(spent.text)), "failed", spent.tokens, why)


def _answer(lead: str, text: str) -> str:
    answer = without_thought(lead + text).strip() if text else ""
    return "" if is_blank(answer) else answer


def _why_nothing(completion: Completion, opened: str) -> str:
    """The reason why a finished completion has no answer."""
    thought = _thought(completion, opened)
    if completion.finish_reason != "length":
        return (
            "the model thought, and answered nothing" if thought else "the model answered nothing"
        )
    return f"its tokens were spent {'on thought ' if thought else ''}before it answered"


def _thought(completion: Completion, opened: str) -> bool:
    text = opened + completion.text
    marks = (*(begin for begin, _ in THOUGHTS), *THOUGHT_ENDS)
    return not is_blank(completion.reasoning) or any(mark in text for mark in marks)
