"""One process of a run: takes the run from the journal, goes on with it, and may be killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.integration.crash.ledger import LedgerTools, entries, receipt
from tests.integration.crash.program import Program
from weft.core.errors import UnknownReference
from weft.core.events import Event, HumanAsked
from weft.core.ids import RunId
from weft.core.ports.journal import Claim, Journal, NumberedRecord, Record, RunHeader
from weft.durability.calls import CallLog, Confirmation, RecordingTools, once_calls
from weft.durability.journal.resume_state import RecordedResumeState
from weft.durability.journal.sqlite import SqliteJournal
from weft.engine import Graph, Run, RunOptions
from weft.engine.runner.recorder import Durability, RunRecorder
from weft.engine.runner.result import RunResult

RUN = RunId("crash")


@dataclass(frozen=True, slots=True)
class Death:
    """Die at the `number`-th (from 1) moment of a kind."""

    moment: Literal["append", "appended", "acted"]
    number: int


class Dying:
    """Counts moments, and kills this process at the one that was drawn."""

    def __init__(self, death: Death | None) -> None:
        self._death = death
        self._left = death.number if death is not None else 0

    def __call__(self, moment: str) -> None:
        if self._death is not None and self._death.moment == moment:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class DyingJournal(SqliteJournal):
    """A journal whose process may die just before or after something is written."""

    dying: Callable[[str], None] = Dying(None)

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        self.dying("append")
        super().append(run, records, wait=wait)
        self.dying("appended")


def go_on(
    folder: Path,
    seed: int,
    durability: Durability = "sync",
    dying: Callable[[str], None] | None = None,
) -> None:
    """Begin or resume the run in `folder`; write its result there when it has ended.

    `dying` is told of each moment at which the process may die, or be held back.
    """
    journal = DyingJournal(folder / "journal.sqlite")
    journal.dying = dying = dying or Dying(None)
    claim, records = taken(journal)
    recall = RecordedResumeState(records) if records else None
    recorder = RunRecorder(journal, RUN, durability)
    ledger = folder / "ledger"
    calls = CallLog(
        RUN,
        lambda: recorder.now_s,
        recorder.write,
        past=[each.record for each in records],
        confirmed=_told(records, ledger),
    )
    tools = RecordingTools(LedgerTools(ledger, lambda: dying("acted")), calls)
    program = Program(seed, tools)
    graph = Graph("crash", program.nodes)
    options = RunOptions(max_concurrency=(None, 3)[seed % 2])

    def person(event: Event) -> None:
        if isinstance(event, HumanAsked):
            said = f"{event.question}: {event.node}"
            asyncio.get_running_loop().call_later(0.002, run.answer, event.node, said)

    run = Run(graph, options, run=RUN, listeners=[person], recall=recall, recorder=recorder)
    result = asyncio.run(run.wait())
    claim.release()
    journal.close()
    if recorder.lost is not None:
        raise recorder.lost
    (folder / "result").write_text(json.dumps(_plain(result)))


def taken(journal: Journal) -> tuple[Claim, list[NumberedRecord]]:
    """The right to the run, begun now if it was not, and what is recorded of it."""
    try:
        claim = journal.claim(RUN)
    except UnknownReference:
        header = RunHeader(RUN, "crash", "2026-01-01T00:00:00+00:00", "0")
        return journal.begin(header), []
    return claim, list(journal.records(RUN))


def _told(records: Sequence[NumberedRecord], ledger: Path) -> dict[str, Confirmation]:
    """What a person says who looks into the ledger for the calls nobody knows the end of."""
    written = entries(ledger)
    told = {}
    for call in once_calls(each.record for each in records):
        if call.done == "unknown":
            key = call.arguments["key"]
            done = Confirmation("done", receipt(key)) if written[key] else Confirmation("repeat")
            told[f"{call.node}@{call.call}"] = done
    return told


def _plain(result: RunResult) -> dict[str, Any]:
    """What must be the same, however often the run was killed: nodes that no race was about.

    Nor is what is said of the loser of a race, whose call may have acted before it was cancelled.
    """
    nodes = {
        node: [outcome.status, outcome.value, outcome.attempts, outcome.via, str(outcome.failure)]
        for node, outcome in result.outcomes.items()
        if "way" not in node
    }
    reasons = sorted(reason for reason in result.reasons if "way" not in reason)
    return {"status": result.status, "reasons": reasons, "nodes": nodes}
