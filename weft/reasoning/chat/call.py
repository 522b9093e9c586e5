"""One call of a model with a fresh prompt, as the work of a node. Knows no thread and no ledger.

The call may generate so many tokens over all its attempts; what broke off is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from weft.core.errors import CapabilityError, ModelOutputError, ModelRequestError
from weft.core.events import Outcome
from weft.core.generated_text import is_blank, without_thought
from weft.core.ports import (
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

_GRACE_S: Final = 1.0
_BYTES_PER_TOKEN: Final = 2


@dataclass(slots=True)
class CallProgress:
    """What a call came to so far, whatever ends it. Of its `tokens`, `kept` are its answer's."""

    tokens: int = 0
    kept: int = 0
    usage: Usage = field(default_factory=Usage)
    text: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)


Watch = Callable[["CallProgress", Delta], None]
"""Told of each piece, with what the call has come to so far; must be fast."""


class ChatCall:
    """A work that asks `model` what `request` asks, with at most `request.sampling.max_tokens`.

    Its value is the `Completion`. One that does not fit the schema is returned all the same, with
    the finish reason "error" or "length"; a schema that the model refuses is left out. `spent` can
    be read at any time; `watch` is told of each piece.
    """

    def __init__(
        self, model: ModelClient, request: ModelRequest, watch: Watch | None = None
    ) -> None:
        self.spent = CallProgress()
        self._watch = watch
        self._model = model
        self._request = request

    async def work(self, context: NodeContext, _: Inputs) -> Completion:
        """The work. Raises: `ModelError`."""
        try:
            return await self._asked(context, self._request)
        except ModelRequestError as error:
            if self._request.schema is None:
                raise
            context.log(f"asked again without a schema: {error}")
            return await self._asked(context, replace(self._request, schema=None))

    async def _asked(self, context: NodeContext, request: ModelRequest) -> Completion:
        sent = self._situated(context, request)
        spent = self.spent
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
            cut = meter.usage.completion_tokens >= (sent.sampling.max_tokens or 0)
            completion = Completion("".join(spent.text), "length" if cut else "error")
        finally:
            spent.tokens = before + (meter.usage.completion_tokens or spent.tokens - before)
            spent.usage += meter.usage
            context.spend(meter.usage)
        spent.kept = spent.tokens - before
        return completion

    def _situated(self, context: NodeContext, request: ModelRequest) -> ModelRequest:
        """`request` with what its node knows, and as many tokens as are left for it."""
        left = (request.sampling.max_tokens or 1) - self.spent.tokens
        allowed = context.tokens_left()
        if allowed is not None:
            left = min(left, max(1, allowed))
        if left < 1:
            raise ModelRequestError("the tokens of this call were spent on attempts that broke off")
        left_s = context.time_left()
        return replace(
            request,
            sampling=replace(request.sampling, max_tokens=left),
            priority=context.priority,
            program=context.program,
            timeout_s=None if left_s is None else left_s + _GRACE_S,
        )


async def encode_prompt(model: ModelClient, messages: tuple[Message, ...]) -> tuple[int, ...]:
    """`messages` as a prompt in which no text of theirs can become a special token.

    Empty where the model cannot say: its server then makes the prompt. Raises: `ModelError`.
    """
    if not isinstance(model, Tokenizing) or not (await model.capabilities()).prompt_token_ids:
        return ()
    try:
        return await model.encode_chat(messages)
    except CapabilityError:
        return ()


async def count_tokens(model: ModelClient, text: str) -> int:
    """How many tokens `text` has; where the model cannot say, rather too many than too few.

    Raises: `ModelError`.
    """
    if isinstance(model, Tokenizing):
        try:
            return len(await model.encode(text))
        except CapabilityError:
            pass
    return estimate(text)


def estimate(*texts: str) -> int:
    """About how many tokens `texts` have together, rather too many than too few."""
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return math.ceil(size / _BYTES_PER_TOKEN)


def prompt_estimate(messages: Sequence[Message]) -> int:
    """`estimate` for a conversation."""
    return estimate(*(message.content for message in messages))


@dataclass(frozen=True, slots=True)
class Generation:
    """What the model said.

    finished   it came to its end
    length     it was cut off at its share of tokens
    failed     the call failed, or its prompt fills the window; `text` is what came before
    refused    it was not asked: no tokens are left for it

    `text` is without the reasoning that some models write before their answer. `reason` says why
    there is none.
    """

    text: str
    status: Literal["finished", "length", "failed", "refused"] = "finished"
    tokens: int = 0
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether the model said something, were it cut off."""
        return self.status in ("finished", "length") and bool(self.text)

    @property
    def cut(self) -> bool:
        """Whether the model had more to say than its share of tokens."""
        return self.status == "length"


def generation_of(outcome: Outcome, spent: CallProgress, lead: str = "") -> Generation:
    """What came of a call whose node ended with `outcome`, after it had `spent`.

    `lead`: how the answer begins; the model went on from there.
    """
    completion = outcome.value
    if isinstance(completion, Completion):
        status: Literal["finished", "length"] = (
            "length" if completion.finish_reason == "length" else "finished"
        )
        text = _answer(lead, completion.text)
        return Generation(text, status, spent.tokens, "" if text else _why_nothing(completion))
    why = str(outcome.failure or f"the call was {outcome.status}")
    return Generation(_answer(lead, "".join(spent.text)), "failed", spent.tokens, why)


def _answer(lead: str, text: str) -> str:
    answer = without_thought(lead + text).strip() if text else ""
    return "" if is_blank(answer) else answer


def _why_nothing(completion: Completion) -> str:
    """Why a model that came to an end has no answer."""
    thought = completion.reasoning.strip() or "<think>" in completion.text
    if completion.finish_reason != "length":
        return (
            "the model thought, and answered nothing" if thought else "the model answered nothing"
        )
    return f"its tokens were spent {'on thought ' if thought else ''}before it answered"
