"""All that is recorded of one run, read once: how its nodes ended, what it asks, what it spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

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
from weft.core.ports.journal import Journal, Losses, Numbered, RunHeader
from weft.engine.trace import Trace


@dataclass(frozen=True)
class Story:
    """The header and the records of a run, in order; `losses`: what is missing of them."""

    header: RunHeader
    records: Sequence[Numbered]
    losses: Losses = field(default_factory=Losses)

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


LOST: Final = "lost"
"""The setting of a header that says, in sentences, what was missing when its run was exported."""


def story_of(journal: Journal, run: RunId, losses: Losses | None = None) -> Story:
    """Read a run; `losses`: what the journal said of it before. Raises: `UnknownReference`,
    `StoreError`."""
    found = losses or journal.losses(run)
    return _whole(journal.header(run), list(journal.records(run)), found)


def salvaged(journal: Journal, run: RunId) -> Story:
    """What is sound of a run, whose `losses` say what is not. Raises: `UnknownReference`."""
    found, losses = journal.salvage(run), journal.losses(run)
    if found.problems:
        notes = (*found.problems, *losses.notes)
        losses = replace(losses, notes=notes, unsure=True)
    return _whole(found.header, found.records, losses)


def _whole(header: RunHeader, records: Sequence[Numbered], losses: Losses) -> Story:
    """With the calls that are known from beside the record, at its end."""
    lost = header.settings.get(LOST)
    if isinstance(lost, list):
        notes = (*(str(note) for note in lost), *losses.notes)
        losses = replace(losses, notes=notes, unsure=True)
    seq, part = records[-1][:2] if records else (0, 1)
    known = [Numbered(seq + place, part, call) for place, call in enumerate(losses.calls, 1)]
    return Story(header, [*records, *known], losses)
