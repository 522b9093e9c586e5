from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tests.conformance.clock import ClockConformance
from weft.core.ports import Clock
from weft.core.ports.clock import SystemClock
from weft.testing import FakeClock


class TestSystemClock(ClockConformance):
    def make(self) -> SystemClock:
        return SystemClock()


class TestFakeClock(ClockConformance):
    def make(self) -> FakeClock:
        return FakeClock()

    def run(self, clock: Clock, main: Coroutine[Any, Any, None]) -> None:
        assert isinstance(clock, FakeClock)
        clock.run(main)
