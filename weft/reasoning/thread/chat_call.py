"""One call of a model with a fresh prompt, as the work of a node. Knows no thread and no purse.

The call may generate so many tokens over all its attempts; what broke off is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from weft.core.errors import CapabilityError, ModelOutputError, ModelRequestError
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
class Spent:
    """What a call came to so far, whatever ends it. Of its `tokens`, `kept` are its answer's."""

    tokens: int = 0
    kept: int = 0
    usage: Usage = field(default_factory=Usage)
    text: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)


Watch = Callable[["Spent", Delta], None]
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
        self.spent = Spent()
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


async def encoded(model: ModelClient, messages: tuple[Message, ...]) -> tuple[int, ...]:
    """`messages` as a prompt in which no text of theirs can become a special token.

    Empty where the model cannot say: its server then makes the prompt. Raises: `ModelError`.
    """
    if not isinstance(model, Tokenizing) or not (await model.capabilities()).prompt_token_ids:
        return ()
    try:
        return await model.encode_chat(messages)
    except CapabilityError:
        return ()


async def tokens_of(model: ModelClient, text: str) -> int:
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
