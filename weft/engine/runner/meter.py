"""What a run takes of its machine: processor seconds on the event loop and in threads.

In recorded times, waiting for the processor and waiting for the outside look the same; these counts
separate them (see `weft.durability.simulate.machine`). Used where a run is recorded in real time.
"""

from __future__ import annotations

import os
import time
import types
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from weft.core.events import RunMeasured
from weft.core.ids import NodeId
from weft.engine.analysis.critical_path import family

COMPUTED: Final[ContextVar[Callable[[float], None] | None]] = ContextVar(
    "weft_computed", default=None
)
"""Receives, in the event loop, the processor seconds that a thread took for the running node."""
_MIN_S: Final = 0.0005
_SCHEDULED: Final = "/proc/thread-self/schedstat"
_MACHINE: Final = "/proc/stat"
_READ_BYTES: Final = 512


class Meter:
    """Processor time of one run, from now on. Made in the thread of its event loop."""

    def __init__(self) -> None:
        self._began_s, self._late_s = time.thread_time(), _late_s()
        self._processors = _processors()
        self._loop_s: dict[str, tuple[int, float]] = {}
        self._cpu_s: dict[str, float] = {}

    @types.coroutine
    def run(self, node: NodeId, work: Awaitable[Any]) -> Generator[Any, Any, Any]:
        """Run `work`, an attempt of `node`, and count its time on the loop."""
        COMPUTED.set(partial(self._computed, node))
        steps, clock, taken_s = work.__await__(), time.thread_time, 0.0
        sent: Any = None
        thrown: BaseException | None = None
        try:
            while True:
                began_s = clock()
                try:
                    waits_for = steps.send(sent) if thrown is None else steps.throw(thrown)
                except StopIteration as end:
                    return end.value
                finally:
                    taken_s += clock() - began_s
                sent, thrown = None, None
                try:
                    sent = yield waits_for
                except BaseException as error:  # noqa: BLE001 - a cancellation too is the work's
                    thrown = error
        finally:
            name = node if node.isidentifier() else family(node)
            count, before_s = self._loop_s.get(name, (0, 0.0))
            self._loop_s[name] = (count + 1, before_s + taken_s)

    def measured(self, at_s: float) -> RunMeasured:
        """The counts until now."""
        loop_cpu_s = time.thread_time() - self._began_s
        late_s = _late_s() - self._late_s
        idle, total = (
            now - before for now, before in zip(_processors(), self._processors, strict=True)
        )
        computed = {node: cpu_s for node, cpu_s in self._cpu_s.items() if cpu_s >= _MIN_S}
        free = idle / total if total > 0 else None
        loop_s = dict(self._loop_s)
        return RunMeasured(loop_cpu_s, late_s, _cores(), free, loop_s, computed, at_s)

    def _computed(self, node: NodeId, seconds: float) -> None:
        self._cpu_s[node] = self._cpu_s.get(node, 0.0) + seconds


def _late_s() -> float:
    """Seconds this thread has waited for a processor since it began. Linux only."""
    try:
        return int(_head(_SCHEDULED).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _processors() -> tuple[float, float]:
    """The idle time and the whole time of the machine's processors, in ticks. Linux only."""
    try:
        ticks = [int(word) for word in _head(_MACHINE).splitlines()[0].split()[1:9]]
        return float(ticks[3] + ticks[4]), float(sum(ticks))
    except (OSError, ValueError, IndexError):
        return 0.0, 0.0


def _head(path: str) -> bytes:
    """The first bytes of a system file. Raises: `OSError`."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, _READ_BYTES)
    finally:
        os.close(file)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
