"""The page of recorded runs, for the command line and for Python programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from weft.core.calls import CallEvent
from weft.core.errors import ServeError
from weft.core.extras import optional_packages
from weft.core.ids import RunId
from weft.core.ports.journal import Journal, NumberedRecord
from weft.engine.analysis.critical_path import bars, critical_path, shares, speed_advice
from weft.engine.analysis.trace import Trace
from weft.workflow.history.recorded_workflow import result_of
from weft.workflow.history.run_history import read_history
from weft.workflow.history.unsettled_calls import unsettled_calls
from weft.workflow.runtime.journals import open_journal

with optional_packages("the page of the runs", ServeError):
    from weft.serving.ui import ExperimentReaders, RunReaders, RunTiming, RunValues, UiServer

__all__ = ["READERS", "RunsPage"]


def _timing(records: Iterable[NumberedRecord]) -> RunTiming:
    trace = Trace()
    for numbered in records:
        if not isinstance(numbered.record, CallEvent):
            trace(numbered.record)
    path = critical_path(trace)
    best = speed_advice(trace, shares(trace, path))
    return RunTiming(
        {name: bars(trace, node) for name, node in trace.nodes.items()},
        [(step.node, step.doing, step.start_s, step.end_s) for step in path],
        trace.speed_up(),
        None if best is None else (best.target, best.saves_s, best.fraction),
    )


def _values(journal: Journal, run: RunId) -> RunValues:
    """Inputs and outputs as recorded, without secrets; outputs only of a finished run."""
    if not journal.summary(run).ended_wall:
        return RunValues(journal.header(run).inputs)
    history = read_history(journal, run)
    result = result_of(history)
    return RunValues(history.header.inputs, result.outputs, result.missing)


READERS = RunReaders(unsettled_calls, _timing, _values)
"""The readers of recorded runs that the page uses."""


class RunsPage:
    """Shows the runs of a journal at its `url`, also those that other processes execute.

        page = RunsPage("runs.sqlite")
        await page.serve(lambda: print(page.url))

    `where` as for `open_journal`, but a named journal must exist; it may be read-only. `port` 0 is
    any free one. `experiments` read evaluations and studies, as `weft ui` shows them.
    Raises: `StoreError`, and `ServeError` when the port is taken.
    """

    def __init__(
        self,
        where: str | Path | None = None,
        port: int = 0,
        *,
        experiments: ExperimentReaders | None = None,
    ) -> None:
        self._journal = open_journal(where, make=not where, to_read=True)
        try:
            self._server = UiServer(self._journal, replace(READERS, experiments=experiments), port)
        except ServeError:
            self._journal.close()
            raise

    @property
    def url(self) -> str:
        """The address, including the key."""
        return self._server.url

    async def serve(self, ready: Callable[[], None] | None = None) -> None:
        """Serve until `stop`; `ready` is called when browsers can connect."""
        try:
            await self._server.serve(ready)
        finally:
            self._journal.close()

    def stop(self) -> None:
        """End `serve` soon. Call it in the loop's thread."""
        self._server.stop()
