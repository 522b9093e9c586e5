from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.serving.gateway.admission import AdmissionQueue
from weft.serving.gateway.problem import RequestRefused
from weft.testing import FakeClock


@given(
    places=st.integers(1, 4),
    waiting=st.integers(0, 6),
    requests=st.lists(
        st.tuples(
            st.integers(1, 4),  # places
            st.integers(0, 8),  # comes at
            st.integers(0, 6),  # works for
            st.none() | st.integers(0, 12),  # is cancelled at
        ),
        max_size=14,
    ),
)
def test_places_are_never_overrun_nor_lost(
    places: int, waiting: int, requests: list[tuple[int, int, int, int | None]]
) -> None:
    admission = AdmissionQueue(places, waiting)
    inside = 0
    most = 0

    async def one(wanted: int, comes: int, works: int) -> None:
        nonlocal inside, most
        await asyncio.sleep(comes)
        with suppress(RequestRefused):
            async with admission.admitted(wanted):
                inside += wanted
                most = max(most, inside)
                try:
                    await asyncio.sleep(works)
                finally:
                    inside -= wanted

    async def main() -> None:
        loop = asyncio.get_running_loop()
        tasks = []
        for wanted, comes, works, cancelled in requests:
            tasks.append(asyncio.create_task(one(wanted, comes, works)))
            if cancelled is not None:
                loop.call_later(cancelled, tasks[-1].cancel)
        if tasks:
            await asyncio.wait(tasks)
        assert not [task for task in tasks if not task.cancelled() and task.exception()]

    FakeClock().run(main())
    assert most <= places
    assert (admission.running, admission.waiting, inside) == (0, 0, 0)


def test_who_comes_first_goes_first() -> None:
    order = []

    async def one(admission: AdmissionQueue, name: str, places: int) -> None:
        async with admission.admitted(places):
            order.append(name)
            await asyncio.sleep(1)

    async def main() -> None:
        admission = AdmissionQueue(2, 9)
        async with asyncio.TaskGroup() as group:
            for name, places in (("first", 1), ("large", 2), ("small", 1)):
                group.create_task(one(admission, name, places))

    FakeClock().run(main())
    assert order == ["first", "large", "small"]


def test_a_full_house_says_when_to_come_back() -> None:
    async def main() -> None:
        admission = AdmissionQueue(1, 1)
        async with admission.admitted():
            waiting = asyncio.create_task(admission.admitted().__aenter__())
            await asyncio.sleep(0)
            assert (admission.running, admission.waiting) == (1, 1)
            with pytest.raises(RequestRefused) as raised:
                await admission.admitted().__aenter__()
            assert raised.value.problem.status == 429
            assert raised.value.problem.headers()["retry-after"] == "1"
            waiting.cancel()
            await asyncio.wait([waiting])
        with pytest.raises(RequestRefused, match="at most 1"):
            await admission.admitted(2).__aenter__()

    FakeClock().run(main())
