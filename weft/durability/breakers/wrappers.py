"""A model client and a tool runner whose calls pass circuit breakers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from weft.core.errors import WeftError
from weft.core.ports import (
    BatchRunner,
    BoundTool,
    ModelClient,
    ModelEvent,
    ModelRequest,
    ToolRunner,
    bound,
)
from weft.core.values import Completion, ToolSpec
from weft.durability.breakers.guard import BreakerGuard, Verdict, verdict_of
from weft.durability.calls.history import fitted
from weft.durability.rates.clients import CLIENT_PORTS, LimitedClient


def breaker_client(inner: ModelClient, guard: BreakerGuard) -> ModelClient:
    """`inner`, with its optional ports, whose calls pass `guard`; closed as `inner` is."""
    made: ModelClient = fitted(BreakerClient, CLIENT_PORTS, inner)(inner, guard)
    return made


class BreakerClient(LimitedClient):
    """Implements `ModelClient`. A stream that its reader leaves early says nothing of the model."""

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        guard: BreakerGuard = self._limiter  # type: ignore[assignment]
        with guard.call() as call:
            async with aclosing(self._inner.generate(request)) as stream:
                async for event in stream:
                    if isinstance(event, Completion):  # nobody may read on after it
                        call.end(None)
                    yield event


class BreakerTools:
    """Implements `ToolRunner` and `ToolBinder` over `inner`, and `BatchRunner` where `inner` does.

    `guard` returns the guard of a tool, by its name here; None: its calls pass unchanged.
    """

    def __new__(cls, inner: ToolRunner, *_: object) -> BreakerTools:
        made: BreakerTools = object.__new__(fitted(cls, {BatchRunner: _BreakerBatches}, inner))
        return made

    def __init__(self, inner: ToolRunner, guard: Callable[[str], BreakerGuard | None]) -> None:
        self._inner = inner
        self._guard = guard

    def __getattr__(self, name: str) -> Any:
        """What else `inner` knows of its tools, such as their resources."""
        if name in ("resource", "retry", "approval"):
            return getattr(self._inner, name)
        raise AttributeError(name)

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._inner.specs()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self.bound(name)(arguments)

    def bound(self, name: str) -> BoundTool:
        make, guard = bound(self._inner, name), self._guard(name)
        if guard is None:
            return make

        async def call(arguments: Mapping[str, Any]) -> Any:
            with guard.call():
                return await make(arguments)

        return call


class _BreakerBatches(BreakerTools):
    """A batch is one call: it fails where all that is in it failed by the called side."""

    async def call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        assert isinstance(self._inner, BatchRunner)
        guard = self._guard(name)
        if guard is None:
            return await self._inner.call_batch(name, calls)
        with guard.call() as call:
            outcomes = await self._inner.call_batch(name, calls)
            errors = [each for each in outcomes if isinstance(each, WeftError)]
            if len(errors) == len(outcomes) and errors:
                call.end(_of_all(errors), type(errors[-1]).__name__)
            return outcomes


def _of_all(errors: Sequence[WeftError]) -> Verdict:
    verdicts = {verdict_of(error) for error in errors}
    if verdicts == {"failed"}:
        return "failed"
    return "answered" if "answered" in verdicts else "nothing"
