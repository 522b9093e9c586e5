"""A model whose answers are judged before they are shown, piece by piece."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from weft.core.errors import CapabilityError
from weft.core.ports import (
    Capabilities,
    Delta,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    Startable,
    TextDelta,
    UsageMeter,
)
from weft.core.values import Completion
from weft.serving.moderation.judges import Judge

_MOST_TOLD: Final = 200  # characters of an objection, which may be another program's


class ModeratedModel:
    """Implements `ModelClient` and `Startable` over `client`, which the caller closes.

    What was written is held back until at least `every` tokens wait, and then shown if `judge` has
    no objection to prompt and answer as one text; the end of an answer is always judged. None: a
    whole answer at once. With an objection the answer ends as `refused`, with that and what was
    shown before, and the request is cancelled; its usage counts all that was written.
    """

    def __init__(self, client: ModelClient, judge: Judge, every: int | None = None) -> None:
        self.client = client
        self._judge = judge
        self._every = math.inf if every is None else every

    @property
    def model(self) -> str:
        return self.client.model

    async def capabilities(self) -> Capabilities:
        return await self.client.capabilities()

    async def start(self, show: Callable[[str], None] | None = None) -> None:
        """See `Startable`."""
        if isinstance(self.client, Startable):
            await self.client.start(show)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `ModelClient`. Raises: also what the judge raises."""
        if not request.messages:
            raise CapabilityError(
                "a moderated model is asked by messages, not by token ids",
                hint="its moderator has to read them",
            )
        review = _Review(request, self._judge)
        async with aclosing(self.client.generate(request)) as stream:
            async for event in stream:
                review.meter.take(event)
                if isinstance(event, Prefilled):
                    yield event
                    continue
                review.take(event)
                if review.waiting < self._every and not isinstance(event, Completion):
                    continue
                objection = await review.objection()
                if objection is not None:
                    yield review.refused(self.model, objection)
                    return
                for shown in review.shown():
                    yield shown

    async def aclose(self) -> None:
        """Nothing: the client belongs to who made it."""


class _Review:
    """One answer under review: what was shown of it, and what waits."""

    def __init__(self, request: ModelRequest, judge: Judge) -> None:
        self.meter = UsageMeter(request)
        self.waiting = 0
        self._judge = judge
        self._asked = "\n".join(message.content for message in request.messages)
        self._said: list[str] = []
        self._held: list[Delta | Completion] = []
        self._judged: str | None = None
        self._shown: list[Delta] = []

    def take(self, event: Delta | Completion) -> None:
        """Hold `event` back. A call of a tool is read where it is complete."""
        self._held.append(event)
        if isinstance(event, Completion):
            calls = "".join(f"\n{call.name} {call.arguments}" for call in event.tool_calls)
            self._said = [event.reasoning, event.text, calls]
            return
        if isinstance(event, TextDelta | ReasoningDelta):
            self._said.append(event.text)
        self.waiting += len(getattr(event, "token_ids", ())) or 1

    async def objection(self) -> str | None:
        """What the judge has against the text so far, which is not read twice."""
        said = "".join(self._said)
        if said == self._judged:
            return None
        self._judged = said
        return await self._judge.objection(f"{self._asked}\n{said}")

    def shown(self) -> list[Delta | Completion]:
        """What waited, to be shown now."""
        held, self._held = self._held, []
        self._shown += [each for each in held if not isinstance(each, Completion)]
        self.waiting = 0
        return held

    def refused(self, model: str, objection: str) -> Completion:
        """The end of an answer that must not go on."""
        return Completion(
            "".join(each.text for each in self._shown if isinstance(each, TextDelta)),
            "refused",
            usage=self.meter.usage,
            model=model,
            reasoning="".join(
                each.text for each in self._shown if isinstance(each, ReasoningDelta)
            ),
            refusal=objection[:_MOST_TOLD],
        )
