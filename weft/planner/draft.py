"""One plan while a model writes it, in one or several requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass

from weft.core.errors import ModelError, PlanError
from weft.core.ports.metering import UsageMeter
from weft.core.ports.model import (
    Delta,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    Sampling,
    TextDelta,
    only_thought,
    unrefused,
)
from weft.core.values import Completion, Message, Usage
from weft.planner.plan import PlanStep
from weft.planner.text.reader import PlanReader


def unchanged(request: ModelRequest) -> ModelRequest:
    """The request, unchanged."""
    return request


@dataclass(frozen=True, slots=True)
class PlanHooks:
    """Callbacks of a planner.

    `extras` amends each request, `on_text` receives each piece of text with its number of tokens,
    `on_usage` the usage of each request, `on_note` a text for each deviation from the settings.
    """

    extras: Callable[[ModelRequest], ModelRequest] = unchanged
    on_text: Callable[[str, int], None] | None = None
    on_usage: Callable[[Usage], None] | None = None
    on_note: Callable[[str], None] | None = None


class PlanDraft:
    """A plan's `text` so far, with its `tokens`; `cut`: it reached its token limit."""

    def __init__(
        self,
        model: ModelClient,
        messages: tuple[Message, ...],
        reader: PlanReader,
        hooks: PlanHooks,
    ) -> None:
        self._texts: list[str] = []
        self._thought: list[str] = []
        self.tokens = 0
        self.cut = False
        self.reader = reader
        self._model = model
        self._messages = messages
        self._hooks = hooks

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def only_thought(self) -> bool:
        """Whether the model thought, and wrote nothing of a plan."""
        return only_thought(Completion(self.text, reasoning="".join(self._thought)))

    async def write(
        self, sampling: Sampling, grammar: str | None = None
    ) -> AsyncGenerator[PlanStep, None]:
        """Have the model continue, and yield each step as soon as it is complete.

        Text after the join ends the request, and so does closing the generator.

        Raises: `PlanError` for text that is no plan; what `ModelClient.generate` raises.
        """
        self.cut = False
        text = self.text
        written = (Message("assistant", text),) if text else ()
        request = ModelRequest((*self._messages, *written), sampling=sampling, grammar=grammar)
        request = self._hooks.extras(request)
        meter = UsageMeter(request)
        try:
            async with aclosing(self._model.generate(request)) as events:
                try:
                    async for event in events:
                        meter.take(event)
                        if self.reader.complete and _has_text(event):
                            break
                        if isinstance(event, Completion):
                            self._ended(event)
                            break
                        if isinstance(event, ReasoningDelta):
                            self._thought.append(event.text)
                        if isinstance(event, TextDelta):
                            for step in self._take(event):
                                yield step
                except PlanError:
                    await self._drain(events, meter)
                    raise
                await self._drain(events, meter)
        except ModelError as error:
            meter.failed(error)
            raise
        finally:
            self.tokens += meter.usage.completion_tokens
            if self._hooks.on_usage is not None:
                self._hooks.on_usage(meter.usage)

    def back_to_last_line(self, reader: PlanReader) -> None:
        """Drop the unfinished line; `reader` reads the plan from its beginning."""
        whole, line_end, _ = self.text.rpartition("\n")
        self._texts = [whole + line_end]
        self.reader = reader
        reader.feed(self.text)

    def _ended(self, completion: Completion) -> None:
        self.cut = unrefused(completion).finish_reason == "length" and not self.reader.complete

    async def _drain(self, events: AsyncGenerator[ModelEvent, None], meter: UsageMeter) -> None:
        """Read the rest of the stream for the usage, if it ends soon."""
        if meter.estimated:
            await meter.rest(events)
        if meter.estimated and self._hooks.on_note is not None:
            tokens = meter.usage.prompt_tokens
            self._hooks.on_note(f"the plan is ended: its prompt counts as some {tokens} tokens")

    def _take(self, delta: TextDelta) -> Iterator[PlanStep]:
        self._texts.append(delta.text)
        if self._hooks.on_text is not None:
            self._hooks.on_text(delta.text, len(delta.token_ids) or 1)
        before = len(self.reader.steps)
        try:
            self.reader.feed(delta.text)
        except PlanError as error:
            error.written = self.text
            yield from self.reader.steps[before:]
            raise
        yield from self.reader.steps[before:]


def _has_text(event: Prefilled | Delta | Completion) -> bool:
    return isinstance(event, TextDelta) and bool(event.text.strip())
