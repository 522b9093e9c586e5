"""A model client whose answers are judged, piece by piece, before they are shown."""

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
    check_media,
)
from weft.core.values import Completion
from weft.serving.moderation.judges import Judge

_MAX_OBJECTION: Final = 200  # characters; an objection may come from another program


class ModeratedModel:
    """Implements `ModelClient` and `Startable` over `client`, which the caller closes.

    Text is held back until at least `every` tokens wait, and then shown if `judge` has no objection
    to prompt and answer as one text; the end of an answer is always judged. None: the whole answer
    at once. After an objection the request is cancelled and the answer ends as `refused`, with the
    objection and what was shown before; its usage counts all that was written.
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
        """See `ModelClient`. Also raises the errors of the judge."""
        if not request.messages:
            raise CapabilityError(
                "a moderated model is asked by messages, not by token ids",
                hint="its moderator has to read them",
            )
        check_media(request, "a moderated model")  # its moderator could not read them
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
                for released in review.release():
                    yield released

    async def aclose(self) -> None:
        """Do nothing: the caller closes the client."""


class _Review:
    """One answer under review: the events shown, and those held back."""

    def __init__(self, request: ModelRequest, judge: Judge) -> None:
        self.meter = UsageMeter(request)
        self.waiting = 0
        self._judge = judge
        self._prompt = "\n".join(message.content for message in request.messages)
        self._answer: list[str] = []
        self._pending: list[Delta | Completion] = []
        self._judged: str | None = None
        self._shown: list[Delta] = []

    def take(self, event: Delta | Completion) -> None:
        """Hold `event` back. A tool call is judged once it is complete."""
        self._pending.append(event)
        if isinstance(event, Completion):
            calls = "".join(f"\n{call.name} {call.arguments}" for call in event.tool_calls)
            self._answer = [event.reasoning, event.text, calls]
            return
        if isinstance(event, TextDelta | ReasoningDelta):
            self._answer.append(event.text)
        self.waiting += len(getattr(event, "token_ids", ())) or 1

    async def objection(self) -> str | None:
        """The judge's objection to the text so far; an unchanged text is not judged again."""
        answer = "".join(self._answer)
        if answer == self._judged:
            return None
        self._judged = answer
        return await self._judge.objection(f"{self._prompt}\n{answer}")

    def release(self) -> list[Delta | Completion]:
        """Return the events held back, to be shown now."""
        released, self._pending = self._pending, []
        self._shown += [event for event in released if not isinstance(event, Completion)]
        self.waiting = 0
        return released

    def refused(self, model: str, objection: str) -> Completion:
        """The end of a refused answer."""
        return Completion(
            "".join(each.text for each in self._shown if isinstance(each, TextDelta)),
            "refused",
            usage=self.meter.usage,
            model=model,
            reasoning="".join(
                each.text for each in self._shown if isinstance(each, ReasoningDelta)
            ),
            refusal=objection[:_MAX_OBJECTION],
        )
