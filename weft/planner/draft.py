"""One plan while a model writes it, in one request or several. Knows no grammar and no tools."""

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
    Sampling,
    TextDelta,
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
    """Who is told what.

    `extras` adds to each request what only the caller knows, `on_text` gets each piece of text with
    its number of tokens, `on_usage` what each request cost, `on_note` in words what is done
    differently than asked.
    """

    extras: Callable[[ModelRequest], ModelRequest] = unchanged
    on_text: Callable[[str, int], None] | None = None
    on_usage: Callable[[Usage], None] | None = None
    on_note: Callable[[str], None] | None = None


class PlanDraft:
    """`text` is all that has been written, `tokens` what that took; `cut`: it reached its limit."""

    def __init__(
        self,
        model: ModelClient,
        messages: tuple[Message, ...],
        reader: PlanReader,
        hooks: PlanHooks,
    ) -> None:
        self._texts: list[str] = []
        self.tokens = 0
        self.cut = False
        self.reader = reader
        self._model = model
        self._messages = messages
        self._hooks = hooks

    @property
    def text(self) -> str:
        return "".join(self._texts)

    async def write(
        self, sampling: Sampling, grammar: str | None = None
    ) -> AsyncGenerator[PlanStep, None]:
        """Have the model go on, and give each step as soon as it is complete.

        It is stopped where it goes on behind the join. Closing cancels the request.

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
                        if self.reader.complete and _goes_on(event):
                            break
                        if isinstance(event, Completion):
                            self._ended(event)
                            break
                        if isinstance(event, TextDelta):
                            for step in self._take(event):
                                yield step
                except PlanError:
                    await self._told(events, meter)
                    raise
                await self._told(events, meter)
        except ModelError as error:
            meter.failed(error)
            raise
        finally:
            self.tokens += meter.usage.completion_tokens
            if self._hooks.on_usage is not None:
                self._hooks.on_usage(meter.usage)

    def back_to_last_line(self, reader: PlanReader) -> None:
        """Forget the unfinished line; `reader` is to read the plan from its beginning."""
        whole, line_end, _ = self.text.rpartition("\n")
        self._texts = [whole + line_end]
        self.reader = reader
        reader.feed(self.text)

    def _ended(self, completion: Completion) -> None:
        self.cut = unrefused(completion).finish_reason == "length" and not self.reader.complete

    async def _told(self, events: AsyncGenerator[ModelEvent, None], meter: UsageMeter) -> None:
        """Have the model tell what the request cost, where it does so soon and only at its end."""
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


def _goes_on(event: Prefilled | Delta | Completion) -> bool:
    return isinstance(event, TextDelta) and bool(event.text.strip())
