"""The record of one run, read once; and which run a text such as `last` means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from weft.core.calls import CallEvent
from weft.core.errors import UnknownReference
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
from weft.core.ports.journal import (
    Journal,
    Losses,
    NumberedRecord,
    RunHeader,
    RunSummary,
    unknown_run,
)
from weft.durability.journal.refusals import lost
from weft.engine.analysis.trace import Trace


@dataclass(frozen=True)
class RunHistory:
    """The header and the records of a run, in order; `losses`: what is missing of them."""

    header: RunHeader
    records: Sequence[NumberedRecord]
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


def read_history(journal: Journal, run: RunId, losses: Losses | None = None) -> RunHistory:
    """Read a run; `losses`: what the journal said of it before. Raises: `UnknownReference`,
    `StoreError`."""
    found = losses or journal.losses(run)
    return _whole(journal.header(run), list(journal.records(run)), found)


def salvage_history(journal: Journal, run: RunId) -> RunHistory:
    """What is sound of a run, whose `losses` say what is not. Raises: `UnknownReference`."""
    found, losses = journal.salvage(run), journal.losses(run)
    if found.problems:
        notes = (*found.problems, *losses.notes)
        losses = replace(losses, notes=notes, unsure=True)
    return _whole(found.header, found.records, losses)


def _whole(header: RunHeader, records: Sequence[NumberedRecord], losses: Losses) -> RunHistory:
    """With the calls that are known from beside the record, at its end."""
    lost = header.settings.get(LOST)
    if isinstance(lost, list):
        notes = (*(str(note) for note in lost), *losses.notes)
        losses = replace(losses, notes=notes, unsure=True)
    seq, part = records[-1][:2] if records else (0, 1)
    known = [NumberedRecord(seq + place, part, call) for place, call in enumerate(losses.calls, 1)]
    return RunHistory(header, [*records, *known], losses)


LAST = "last"
_MOST_TOLD = 5


def find_run(journal: Journal, text: str) -> RunId:
    """The run of this id, the only one whose id begins like this, or the `last` one.

    Raises: `UnknownReference` when there is none, or more than one; `RunLost`.
    """
    if text == LAST:
        return _last(journal)
    with suppress(UnknownReference):
        return journal.summary(RunId(text)).run
    runs = [summary.run for summary in journal.runs()]
    found = [run for run in runs if run.startswith(text)] if text else []
    for gone in () if found else journal.lost_runs():
        if text and gone.run.startswith(text):
            raise lost(gone)
    if not found:
        raise unknown_run(RunId(text), runs)
    if len(found) > 1:
        shown = ", ".join(found[:_MOST_TOLD]) + (", ..." if len(found) > _MOST_TOLD else "")
        raise UnknownReference(f"{len(found)} runs begin with {text!r}", hint=f"there is: {shown}")
    return found[0]


def _last(journal: Journal) -> RunId:
    latest = journal.runs(limit=1)
    if not latest and (gone := journal.lost_runs()):
        raise lost(gone[-1])
    if not latest:
        raise UnknownReference("the journal has no runs", hint="`weft run FILE` records one")
    return latest[0].run


def standing_word(summary: RunSummary) -> str:
    """How a run stands, in one word: `asking` too where nobody has it who could go on."""
    waits = summary.standing in ("running", "interrupted") and summary.asking
    return "asking" if waits else summary.standing
