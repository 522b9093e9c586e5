"""Groups of workers at the door of a local model: who waits, for how long, and who is refused."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.serving.local.playback import EXACT, asking
from weft.core.errors import ModelRequestError, ModelTimeout, ModelUnavailable, WeftError
from weft.core.ports import ModelRequest, complete
from weft.core.ports.model import ConcurrentAttention, Prefilled
from weft.core.values import Completion
from weft.serving.local import LocalModel, LocalOptions
from weft.testing import FakeClock


def worker(index: int, of: int = 2, group: str = "g", layout: str = "combined") -> ModelRequest:
    attention = ConcurrentAttention(group, of, index, layout)  # type: ignore[arg-type]
    return replace(asking(5, 6, 7 + index), attention=attention)


async def together(model: LocalModel, *asked: ModelRequest) -> list[Completion | WeftError]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(outcome(model, request)) for request in asked]
    return [task.result() for task in tasks]


async def outcome(model: LocalModel, request: ModelRequest) -> Completion | WeftError:
    try:
        return await complete(model, request)
    except WeftError as error:
        return error


def test_workers_of_a_full_group_are_answered_together(tiny_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            found = await together(model, worker(2, 3), worker(0, 3), worker(1, 3))
            assert all(isinstance(one, Completion) for one in found)
            assert model.forwards == 2 + 8 - 1
            alone = await complete(model, asking(5, 6, 7))
            assert isinstance(found[1], Completion)
            assert found[1].token_ids[0] == alone.token_ids[0]  # nobody had written yet
            assert found[1].token_ids != alone.token_ids

    asyncio.run(main())


def test_groups_of_other_names_do_not_mix(tiny_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            asked = [worker(n, group=name) for name in "ab" for n in (0, 1)]
            found = await together(model, *asked)
            texts = [one.text for one in found if isinstance(one, Completion)]
            assert texts[:2] == texts[2:]

    asyncio.run(main())


def test_a_group_that_never_fills_ends_and_loads_nothing(tiny_path: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        model = LocalModel(tiny_path, replace(EXACT, group_wait_s=5.0))
        first = asyncio.ensure_future(outcome(model, worker(0, 4)))
        await asyncio.sleep(3)
        found = [await outcome(model, worker(2, 4)), await first]
        assert loop.time() == 5.0
        for error in found:
            assert isinstance(error, ModelTimeout)
            assert "2 of 4 workers of group 'g' came within 5 s; [1, 3] are missing" in str(error)
        assert model.forwards == 0
        late = await outcome(model, worker(1, 4))
        assert isinstance(late, ModelTimeout)
        assert "1 of 4" in str(late)

    FakeClock().run(main())


def test_a_worker_that_leaves_before_the_start_opens_its_place(tiny_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            gone = asyncio.ensure_future(outcome(model, worker(0)))
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.wait([gone])
            found = await together(model, worker(1), worker(0))
            assert all(isinstance(one, Completion) for one in found)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (worker(0), "worker 0 of group 'g' is there already"),
        (worker(1, 3), "says 3 workers, combined; the others say 2, combined"),
        (worker(1, layout="slots"), "says 2 workers, slots; the others say 2, combined"),
    ],
)
def test_a_worker_that_does_not_fit_is_refused_and_the_group_goes_on(
    tiny_path: Path, second: ModelRequest, said: str
) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            first = asyncio.ensure_future(outcome(model, worker(0)))
            await asyncio.sleep(0)
            error = await outcome(model, second)
            assert isinstance(error, ModelRequestError)
            assert said in str(error)
            found = [await outcome(model, worker(1)), await first]
            assert all(isinstance(one, Completion) for one in found)

    asyncio.run(main())


def test_closing_the_model_ends_those_who_wait(tiny_path: Path) -> None:
    async def main() -> None:
        model = LocalModel(tiny_path, EXACT)
        waiting = asyncio.ensure_future(outcome(model, worker(0)))
        await asyncio.sleep(0)
        await model.aclose()
        assert isinstance(await waiting, ModelUnavailable)

    asyncio.run(main())


def test_the_stream_of_a_worker_may_be_closed_half_way(tiny_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            other = asyncio.ensure_future(outcome(model, worker(1)))
            async with aclosing(model.generate(worker(0))) as stream:
                event = await anext(stream)
                assert event == Prefilled((5, 6, 7))
            assert isinstance(await other, Completion)

    asyncio.run(main())


def test_capabilities_name_the_layouts(tiny_path: Path) -> None:
    async def main() -> None:
        found = await LocalModel(tiny_path).capabilities()
        assert found.placement
        assert found.layouts == ("contiguous", "interleaved", "combined", "slots")

    asyncio.run(main())


@pytest.mark.parametrize("wait_s", [0.0, -1.0, float("nan")])
def test_a_wait_takes_time(wait_s: float) -> None:
    with pytest.raises(ValueError, match="group_wait_s"):
        LocalOptions(group_wait_s=wait_s)
