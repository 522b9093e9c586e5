"""Runs through stages, one behind the other: in threads. Knows no text."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from evals.speculative.pipeinfer.run import Run
from evals.speculative.pipeinfer.stages import Stage
from evals.speculative.pipeinfer.timeline import Timeline

NO_LOGITS: NDArray[np.float32] = np.zeros((0, 0), np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A run has passed: logits [tokens, vocabulary]; none of one that was cancelled on its way."""

    run: Run
    logits: NDArray[np.float32]


class Pipeline(Protocol):
    """Passes runs through all stages and gives results, both in the order in which they were sent.

    skipped: how often a stage left out a run that was cancelled.
    """

    skipped: int

    def send(self, run: Run) -> None:
        """Put a run behind the others."""

    def poll(self) -> Result | None:
        """The next result, if it is there."""

    def wait(self) -> Result:
        """The next result. Raises: what a stage raised."""

    def close(self) -> None:
        """Stop all stages, whatever is on its way. Harmless when repeated."""


@dataclass(frozen=True, slots=True, eq=False)
class _Failed:
    error: BaseException


_Item = tuple[Run, torch.Tensor | None]


class Threads:
    """Implements `Pipeline` with a thread for each stage."""

    def __init__(self, stages: Sequence[Stage], timeline: Timeline | None = None) -> None:
        self.skipped = 0
        self._timeline = timeline
        self._results: SimpleQueue[Result | _Failed] = SimpleQueue()
        self._queues: list[SimpleQueue[_Item | None]] = [SimpleQueue() for _ in stages]
        self._closed = threading.Event()
        self._skips = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(number, stage), daemon=True)
            for number, stage in enumerate(stages)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, run: Run) -> None:
        self._queues[0].put((run, None))

    def poll(self) -> Result | None:
        try:
            return self._taken(self._results.get_nowait())
        except Empty:
            return None

    def wait(self) -> Result:
        return self._taken(self._results.get())

    def close(self) -> None:
        self._closed.set()
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            thread.join()

    def _taken(self, found: Result | _Failed) -> Result:
        if isinstance(found, _Failed):
            raise found.error
        return found

    def _work(self, number: int, stage: Stage) -> None:
        while (item := self._queues[number].get()) is not None and not self._closed.is_set():
            run, entering = item
            try:
                leaving = self._read(number, stage, run, entering)
            except Exception as error:  # noqa: BLE001 - raised where results are waited for
                self._results.put(_Failed(error))
                return
            if number + 1 < len(self._queues):
                self._queues[number + 1].put((run, leaving))
            else:
                logits = NO_LOGITS if leaving is None else leaving.numpy()
                self._results.put(Result(run, logits))

    def _read(
        self, number: int, stage: Stage, run: Run, entering: torch.Tensor | None
    ) -> torch.Tensor | None:
        if run.cancelled:  # also where it was so at an earlier stage, and nothing enters here
            with self._skips:
                self.skipped += 1
            return None
        if self._timeline is None:
            return stage.read(run, entering)
        with self._timeline.working(f"stage {number + 1}", len(run.tokens)) as stamp:
            run.stamps.append(stamp)
            return stage.read(run, entering)
