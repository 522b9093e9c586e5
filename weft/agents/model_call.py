"""One model call in a node of an agent: told of its place in the run, streamed, paid for.

Knows no prompts and no answers' meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from weft.core.ports import (
    Delta,
    ModelClient,
    ModelRequest,
    Startable,
    TextDelta,
    complete,
)
from weft.core.values import Completion
from weft.engine import NodeContext, Policy

_GRACE_S: Final = 1.0


def model_policy(model: ModelClient) -> Policy:
    """The policy of a node that asks `model`: it spends, and takes a slot of the model's class.

    Its failure is the agent's to judge, so the run does not count it by itself.
    """
    return Policy(resource=model.model, spends=True, on_failure="skip")


def placed(request: ModelRequest, context: NodeContext) -> ModelRequest:
    """`request` as the node of `context` sends it: its urgency, and the tokens and time left."""
    left = context.tokens_left()
    wanted = request.sampling.max_tokens
    if left is not None:
        wanted = max(1, left if wanted is None else min(wanted, left))
    left_s = context.time_left()
    return replace(
        request,
        sampling=replace(request.sampling, max_tokens=wanted),
        priority=context.priority,
        program=context.program,
        # The engine ends a late call itself; the server learns when nobody can be waiting.
        timeout_s=None if left_s is None else left_s + _GRACE_S,
    )


async def ready(model: ModelClient, context: NodeContext) -> None:
    """Start `model` if it has to be started. Raises: `ServeError`."""
    if isinstance(model, Startable):
        await model.start(context.log)


async def ask(
    model: ModelClient,
    request: ModelRequest,
    context: NodeContext,
    on_delta: Callable[[Delta], None] | None = None,
) -> Completion:
    """The whole answer to `request`; its text is streamed as events, and what it cost is spent.

    `on_delta` sees every piece. Raises: what `ModelClient.generate` raises.
    """

    def show(delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            context.stream(delta.text, len(delta.token_ids) or 1)
        if on_delta is not None:
            on_delta(delta)

    await ready(model, context)
    completion = await complete(model, placed(request, context), show)
    context.spend(completion.usage)
    return completion
