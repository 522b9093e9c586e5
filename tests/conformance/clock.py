"""What every `Clock` must do. Subclass, say how to make one and how to run on it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, timedelta
from typing import Any

import pytest

from weft.core.ports import Clock

MOMENT = 0.01


class ClockConformance:
    """The suite; on a real clock it waits for about a tenth of a second altogether."""

    def make(self) -> Clock:
        """A clock."""
        raise NotImplementedError

    def run(self, clock: Clock, main: Coroutine[Any, Any, None]) -> None:
        """Run `main` in a new event loop to which the clock belongs."""
        asyncio.run(main)

    def test_time_never_goes_back(self) -> None:
        clock = self.make()

        async def main() -> None:
            seen = [clock.now()]
            for _ in range(5):
                await clock.sleep(MOMENT / 10)
                seen.append(clock.now())
            assert seen == sorted(seen)
            assert seen[0] < seen[-1]

        self.run(clock, main())

    def test_sleep_takes_at_least_its_time(self) -> None:
        clock = self.make()

        async def main() -> None:
            start = clock.now()
            await clock.sleep(MOMENT)
            # An event loop may wake up to its clock's resolution early.
            assert clock.now() - start >= MOMENT * 0.9

        self.run(clock, main())

    def test_wall_time_is_utc_and_moves_with_now(self) -> None:
        clock = self.make()

        async def main() -> None:
            before = clock.wall()
            await clock.sleep(MOMENT)
            assert before.tzinfo is UTC
            assert clock.wall() - before >= timedelta(seconds=MOMENT * 0.5)

        self.run(clock, main())

    def test_timers_fire_once_in_the_order_of_their_times(self) -> None:
        clock = self.make()
        fired: list[str] = []

        async def main() -> None:
            clock.call_later(MOMENT * 2, lambda: fired.append("second"))
            clock.call_later(MOMENT, lambda: fired.append("first"))
            assert not fired
            await clock.sleep(MOMENT * 3)

        self.run(clock, main())
        assert fired == ["first", "second"]

    def test_a_cancelled_timer_never_fires(self) -> None:
        clock = self.make()
        fired: list[str] = []

        async def main() -> None:
            timer = clock.call_later(MOMENT, lambda: fired.append("cancelled"))
            kept = clock.call_later(MOMENT, lambda: fired.append("kept"))
            timer.cancel()
            timer.cancel()
            await clock.sleep(MOMENT * 2)
            kept.cancel()

        self.run(clock, main())
        assert fired == ["kept"]

    def test_sleep_can_be_cancelled(self) -> None:
        clock = self.make()

        async def main() -> None:
            sleeper = asyncio.create_task(clock.sleep(3600))
            await asyncio.sleep(0)
            sleeper.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sleeper

        start = clock.now()
        self.run(clock, main())
        assert clock.now() - start < 3600
