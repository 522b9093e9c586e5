"""Listeners without a display: bounded node outputs; and no progress, for --quiet."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.core.events import BreakerChanged, Event, NodeLogged, NodeStarted, NodeStreamed
from weft.core.ids import NodeId

if TYPE_CHECKING:
    from rich.console import Console


_HEAD = 600
_TAIL = 240
_LOG_LINES = 5


@dataclass(slots=True)
class NodeOutput:
    """The output of one node's latest attempt.

    `tokens` came after the first piece, which came at `since_s`: together they give a speed.
    """

    head: str = ""
    tail: str = ""
    tokens: int = 0
    since_s: float | None = None
    until_s: float = 0.0
    logs: deque[str] = field(default_factory=lambda: deque(maxlen=_LOG_LINES))

    @property
    def tokens_per_s(self) -> float | None:
        """The speed of the stream; None while it is unknown."""
        if self.since_s is None or self.until_s <= self.since_s:
            return None
        return self.tokens / (self.until_s - self.since_s)


class NodeOutputLog:
    """A listener that collects the outputs of nodes."""

    def __init__(self) -> None:
        self.of: defaultdict[NodeId, NodeOutput] = defaultdict(NodeOutput)

    def __call__(self, event: Event) -> None:
        if isinstance(event, NodeStreamed):
            output = self.of[event.node]
            if output.since_s is None:
                output.since_s = event.at_s
            else:
                output.tokens += event.tokens
            output.until_s = event.at_s
            output.head += event.text[: _HEAD - len(output.head)]
            output.tail = (output.tail + event.text)[-_TAIL:]
        elif isinstance(event, NodeLogged):
            self.of[event.node].logs.append(event.text[:_HEAD])
        elif isinstance(event, BreakerChanged):
            text = f"circuit breaker of the {event.kind} {event.name} is {event.state}"
            self.of[event.node].logs.append(f"{text}: {event.reason}"[:_HEAD])
        elif isinstance(event, NodeStarted) and event.attempt > 1:
            self.of[event.node] = NodeOutput(logs=self.of[event.node].logs)


class QuietProgress:
    """Implements `ProgressDisplay` without showing anything."""

    def __init__(self, console: Callable[[], Console]) -> None:
        self._console = console

    def __call__(self, event: Event) -> None:
        """Does nothing."""

    def shown(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def paused(self) -> AbstractContextManager[Console]:
        return nullcontext(self._console())
