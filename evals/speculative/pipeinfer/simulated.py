"""The same pipeline without threads: on a clock of its own, where every pass takes what is said.

Results are computed for real, times are not measured: the schedule is the same on every machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import torch

from evals.speculative.pipeinfer.pipeline import NO_LOGITS, Result
from evals.speculative.pipeinfer.run import Run
from evals.speculative.pipeinfer.stages import Stage
from evals.speculative.pipeinfer.timeline import Timeline
from weft.decoding.network.network import SpanOutput
from weft.decoding.network.packing import Span
from weft.decoding.speculative.drafters.model.draft_cache import DraftNetwork


class VirtualClock:
    """Seconds that pass when it is told so."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        """Seconds since it was made."""
        return self._now

    def set(self, now: float) -> None:
        """Another moment; an earlier one while what goes on at the same time is played after it."""
        self._now = now

    def pass_by(self, seconds: float) -> None:
        """So much later."""
        self._now += seconds


class Costed:
    """A network each of whose passes takes `seconds(tokens)` of a virtual clock."""

    def __init__(
        self, network: DraftNetwork, clock: VirtualClock, seconds: Callable[[int], float]
    ) -> None:
        self.vocabulary_size = network.vocabulary_size
        self.context_tokens = network.context_tokens
        self._network = network
        self._clock = clock
        self._seconds = seconds

    def forward(self, spans: Sequence[Span]) -> dict[int, SpanOutput]:
        """As the network does it."""
        self._clock.pass_by(self._seconds(sum(len(span.tokens) for span in spans)))
        return self._network.forward(spans)


class Beside:
    """Implements `Worker`: work goes on beside what is done until its result is asked for."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def start(self, work: Callable[[], None]) -> Future[None]:
        began = self._clock.now()
        done = _Later(self._clock)
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told to who asks for the result
            done.set_exception(error)
        else:
            done.set_result(None)
        done.ready_s = self._clock.now()
        self._clock.set(began)
        return done

    def close(self) -> None:
        """Nothing is under way."""


class _Later(Future[None]):
    """Who asks for it waits until `ready_s`."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self.ready_s = 0.0
        self._clock = clock

    def result(self, timeout: float | None = None) -> None:
        self._clock.set(max(self._clock.now(), self.ready_s))
        return super().result(timeout)


@dataclass(slots=True, eq=False)
class _Item:
    run: Run
    ready_s: float
    stage: int = 0
    leaving: torch.Tensor | None = field(default=None)


class Simulated:
    """Implements `Pipeline`: stage `n` takes `seconds(n, tokens)` for a run, and one at a time.

    A run that is cancelled before a stage begins it takes no time there.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        clock: VirtualClock,
        seconds: Callable[[int, int], float],
        timeline: Timeline | None = None,
    ) -> None:
        self.skipped = 0
        self._stages = stages
        self._clock = clock
        self._seconds = seconds
        self._timeline = timeline
        self._free_s = [0.0] * len(stages)
        self._items: deque[_Item] = deque()

    def send(self, run: Run) -> None:
        self._advance(self._clock.now())
        self._items.append(_Item(run, self._clock.now()))

    def poll(self) -> Result | None:
        now = self._clock.now()
        self._advance(now)
        if self._items and self._through(self._items[0]) and self._items[0].ready_s <= now:
            return self._taken()
        return None

    def wait(self) -> Result:
        first = self._items[0]
        while not self._through(first):
            self._step(first, float("inf"))
        self._clock.set(max(self._clock.now(), first.ready_s))
        self._advance(self._clock.now())
        return self._taken()

    def close(self) -> None:
        self._items.clear()

    def _taken(self) -> Result:
        item = self._items.popleft()
        return Result(item.run, NO_LOGITS if item.leaving is None else item.leaving.numpy())

    def _through(self, item: _Item) -> bool:
        return item.stage == len(self._stages)

    def _advance(self, now: float) -> None:
        """Begin all that can begin before `now`: later ones may still be cancelled."""
        for item in self._items:
            while not self._through(item) and self._step(item, now):
                pass

    def _step(self, item: _Item, before: float) -> bool:
        number = item.stage
        began = max(item.ready_s, self._free_s[number])
        if began >= before:
            return False
        run = item.run
        if run.cancelled:
            self.skipped += 1
            item.leaving = None
            item.ready_s = began
        else:
            item.ready_s = began + self._seconds(number, len(run.tokens))
            item.leaving = self._read(number, run, item, began)
        self._free_s[number] = item.ready_s
        item.stage += 1
        return True

    def _read(self, number: int, run: Run, item: _Item, began: float) -> torch.Tensor:
        if self._timeline is not None:
            now = self._clock.now()
            self._clock.set(began)
            with self._timeline.working(f"stage {number + 1}", len(run.tokens)) as stamp:
                self._clock.set(item.ready_s)
            run.stamps.append(stamp)
            self._clock.set(now)
        return self._stages[number].read(run, item.leaving)
