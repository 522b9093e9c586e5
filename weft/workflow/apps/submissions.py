"""Queued runs for the clients of a gateway, in a journal that other processes have, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.errors import UnknownReference
from weft.core.ids import RunId
from weft.core.ports.journal import Journal
from weft.core.ports.queue import queue_of
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.flow.flow import Flow
from weft.workflow.history.cancel import cancel_run
from weft.workflow.history.recorded_workflow import result_of
from weft.workflow.history.run_history import read_history, standing_word
from weft.workflow.history.signals import send_signal
from weft.workflow.queue.live_workers import live_workers


class JournalSubmissions:
    """Implements `RunSubmissions` for `flows`, by their names. Runs are named by whole ids."""

    def __init__(self, flows: Sequence[Flow], journal: Journal) -> None:
        self._flows = {flow.name: flow for flow in flows}
        self._journal = journal
        queue_of(journal)  # raises where there is none

    def submit(self, flow: str, inputs: Mapping[str, Any], terms: Mapping[str, Any]) -> str:
        found = self._flows.get(flow)
        if found is None:
            hint = choice_hint(flow, list(self._flows))
            text = f"there is no workflow {flow!r:.80}" + (f"; {hint}" if hint else "")
            raise UnknownReference(text)
        return str(found.submit(inputs, **terms, journal=self._journal).id)

    def look(self, run: str) -> Mapping[str, Any]:
        summary = self._summary(run)
        entry = queue_of(self._journal).entry(summary.run)
        status = standing_word(summary)
        if entry is not None and entry.state != "ended":
            status = entry.state
        seen: dict[str, Any] = {
            "run": run,
            "flow": summary.flow,
            "status": status,
            "asking": list(summary.asking),
            "reason": None if entry is None else entry.reason or None,
        }
        if status in ("succeeded", "partial", "failed", "cancelled"):
            result = result_of(read_history(self._journal, summary.run))
            seen |= {
                "outputs": dict(result.outputs),
                "missing": dict(result.missing),
                "reasons": list(result.reasons),
            }
        return seen

    def cancel(self, run: str) -> str:
        found = self._summary(run).run
        if not cancel_run(self._journal, found, "a client cancelled it"):
            return "running"
        return standing_word(self._summary(run))

    def signal(self, run: str, node: str, value: Any) -> bool:
        return send_signal(self._journal, self._summary(run).run, node, value)

    def workers(self) -> Sequence[Mapping[str, Any]]:
        return [worker.data() for worker in live_workers(self._journal)]

    def _summary(self, run: str) -> Any:
        try:
            return self._journal.summary(RunId(run))
        except UnknownReference:
            raise UnknownReference(f"there is no run {run!r:.200}") from None
