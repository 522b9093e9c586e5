"""All that is recorded of one run, read once: how its nodes ended, what it asks, what it spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from weft.core.calls import CallEvent
from weft.core.events import (
    Event,
    HumanAnswered,
    HumanAsked,
    NodeFinished,
    Outcome,
    RunFinished,
    RunResumed,
)
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Numbered, RunHeader
from weft.engine.trace import Trace


@dataclass(frozen=True)
class Story:
    """The header and the records of a run, in order."""

    header: RunHeader
    records: Sequence[Numbered]

    @property
    def run(self) -> RunId:
        """The run's id."""
        return self.header.run

    @property
    def events(self) -> Iterator[Event]:
        """What happened inside, without the calls to models and tools."""
        return (one.record for one in self.records if not isinstance(one.record, CallEvent))

    @property
    def calls(self) -> Iterator[CallEvent]:
        """What passed to models and tools, and back."""
        return (one.record for one in self.records if isinstance(one.record, CallEvent))

    @cached_property
    def outcomes(self) -> dict[NodeId, Outcome]:
        """How each node ended, where it has, in the order of the ends."""
        return {
            event.node: event.outcome for event in self.events if isinstance(event, NodeFinished)
        }

    @cached_property
    def questions(self) -> dict[NodeId, HumanAsked]:
        """What nodes ask that nobody has answered."""
        asked: dict[NodeId, HumanAsked] = {}
        for event in self.events:
            match event:
                case HumanAsked():
                    asked[event.node] = event
                case HumanAnswered() | NodeFinished():
                    asked.pop(event.node, None)
        return asked

    @cached_property
    def ended(self) -> RunFinished | None:
        """The end of the run; None while it has none."""
        end: RunFinished | None = None
        for event in self.events:
            if isinstance(event, RunFinished):
                end = event
            elif isinstance(event, RunResumed):
                end = None
        return end

    @cached_property
    def trace(self) -> Trace:
        """The run as its listeners saw it."""
        trace = Trace()
        for event in self.events:
            trace(event)
        return trace


def story_of(journal: Journal, run: RunId) -> Story:
    """Read a run. Raises: `UnknownReference`, `StoreError`."""
    return Story(journal.header(run), list(journal.records(run)))
