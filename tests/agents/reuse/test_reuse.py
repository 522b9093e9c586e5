from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from weft.agents.reuse import ReusingTools
from weft.agents.tools import Toolbox, tool, tool_logs
from weft.core.errors import StoreError, ToolNotFound, ToolRaised, WeftError
from weft.core.ports import StoreEntry, bound
from weft.durability.result_store import SqliteStore
from weft.testing import FakeClock, MemoryStore


class Shop:
    """Tools on the loop's clock that write down what really ran."""

    def __init__(self, *, broken: bool = False) -> None:
        self.ran: list[Any] = []
        self.ended: list[Any] = []
        self.broken = broken

    def tools(self, *, pure: bool = True, batch: bool = False, version: str = "1") -> Toolbox:
        async def price(item: str) -> Mapping[str, str]:
            """Look it up."""
            self.ran.append(item)
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                self.ended.append(item)
                raise
            if self.broken:
                raise ValueError(f"no {item}")
            return {"item": item}

        async def prices(calls: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
            self.ran.append([call["item"] for call in calls])
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                self.ended.append(len(calls))
                raise
            if self.broken:
                raise ValueError("nothing there")
            return [
                ValueError("no such thing") if call["item"] == "bad" else {"item": call["item"]}
                for call in calls
            ]

        made = tool(pure=pure, batch=prices if batch else None, version=version)(price)
        return Toolbox(made)


def at_once(reusing: ReusingTools, *items: str) -> list[Any]:
    async def main() -> list[Any]:
        tasks = [asyncio.ensure_future(reusing.call("price", {"item": item})) for item in items]
        await asyncio.wait(tasks)
        return [task.exception() or task.result() for task in tasks]

    return FakeClock().run(main())


def test_identical_calls_are_made_once_while_they_run_and_after() -> None:
    shop = Shop()
    reusing = ReusingTools(shop.tools())
    first = at_once(reusing, "tea", "tea", "jam")
    again = at_once(reusing, "tea", "jam")
    assert [value["item"] for value in first + again] == ["tea", "tea", "jam", "tea", "jam"]
    assert shop.ran == ["tea", "jam"]
    counts = reusing.counts
    assert (counts.asked, counts.shared, counts.made) == (5, 3, 2)


def test_calls_that_are_not_pure_are_made_each_time() -> None:
    shop = Shop()
    reusing = ReusingTools(shop.tools(pure=False))
    at_once(reusing, "tea", "tea")
    assert shop.ran == ["tea", "tea"]
    assert reusing.counts.shared == 0


def test_a_tool_that_is_looked_up_once_is_shared_and_counted_like_any_call() -> None:
    for pure, made in ((True, 1), (False, 2)):
        shop = Shop()
        reusing = ReusingTools(shop.tools(pure=pure, batch=False))

        async def twice(reusing: ReusingTools = reusing) -> None:
            call = bound(reusing, "price")
            assert await call({"item": "tea"}) == await call({"item": "tea"})

        FakeClock().run(twice())
        assert (reusing.counts.asked, reusing.counts.made, len(shop.ran)) == (2, made, made)


def test_nobody_can_change_what_others_receive() -> None:
    reusing = ReusingTools(Shop().tools())
    first, second = at_once(reusing, "tea", "tea")
    first["item"] = "poison"
    assert second == {"item": "tea"}
    assert at_once(reusing, "tea") == [{"item": "tea"}]


def test_numbers_and_texts_that_look_alike_are_different_calls() -> None:
    seen: list[Any] = []

    @tool(pure=True)
    async def show(value: Any) -> str:
        seen.append(value)
        return repr(value)

    async def main() -> None:
        reusing = ReusingTools(Toolbox(show))
        for value in (1, 1.0, True, "1", None, [1], {"1": 1}, 1):
            await reusing.call("show", {"value": value})

    asyncio.run(main())
    assert [repr(value) for value in seen] == [
        *("1", "1.0", "True", "'1'", "None", "[1]", "{'1': 1}")
    ]


def test_a_failure_reaches_all_who_wait_and_is_not_kept() -> None:
    shop = Shop(broken=True)
    reusing = ReusingTools(shop.tools())
    first, second = at_once(reusing, "tea", "tea")
    assert isinstance(first, ToolRaised)
    assert isinstance(second, ToolRaised)
    assert first is not second  # each learns the node it happened at
    assert isinstance(first.__cause__, ValueError)
    assert shop.ran == ["tea"]
    shop.broken = False
    assert at_once(reusing, "tea") == [{"item": "tea"}]
    assert shop.ran == ["tea", "tea"]


@pytest.mark.parametrize("batch", [False, True])
def test_who_is_cancelled_does_not_take_the_others_along(batch: bool) -> None:
    shop = Shop()
    reusing = ReusingTools(shop.tools(batch=batch))

    async def main() -> list[Any]:
        items = ("tea", "tea", "jam", "jam")
        tasks = [asyncio.ensure_future(reusing.call("price", {"item": item})) for item in items]
        await asyncio.sleep(0.5)
        for index in (0, 2, 3):
            tasks[index].cancel()
        await asyncio.wait(tasks)
        return tasks

    tasks = FakeClock().run(main())
    assert [task.cancelled() for task in tasks] == [True, False, True, True]
    assert tasks[1].result() == {"item": "tea"}
    assert shop.ended == ([] if batch else ["jam"])


@pytest.mark.parametrize("batch", [False, True])
def test_the_last_one_to_be_cancelled_ends_the_call(batch: bool) -> None:
    shop = Shop()
    reusing = ReusingTools(shop.tools(batch=batch))

    async def main() -> Any:
        tasks = [
            asyncio.ensure_future(reusing.call("price", {"item": item})) for item in ("tea", "jam")
        ]
        await asyncio.sleep(0.5)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert shop.ended == ([2] if batch else ["tea", "jam"])
        assert len(asyncio.all_tasks()) == 1
        return await reusing.call("price", {"item": "tea"})

    assert FakeClock().run(main()) == {"item": "tea"}


def test_a_call_taken_up_while_its_forerunner_is_being_cancelled_runs_anew() -> None:
    shop = Shop()
    reusing = ReusingTools(shop.tools())

    async def main() -> Any:
        first = asyncio.ensure_future(reusing.call("price", {"item": "tea"}))
        await asyncio.sleep(0.5)
        first.cancel()
        second = asyncio.ensure_future(reusing.call("price", {"item": "tea"}))
        await asyncio.wait({first, second})
        return second.result()

    assert FakeClock().run(main()) == {"item": "tea"}


def test_the_oldest_results_are_forgotten() -> None:
    shop = Shop()
    reusing = ReusingTools(shop.tools(), kept=2)
    for item in ("a", "b", "c", "b", "a"):
        at_once(reusing, item)
    assert shop.ran == ["a", "b", "c", "a"]


# -- fusion --------------------------------------------------------------------------------------


def test_similar_calls_are_fused_and_split_again() -> None:
    shop = Shop()
    reusing = ReusingTools(shop.tools(batch=True))
    tea, bad, again, jam = at_once(reusing, "tea", "bad", "tea", "jam")
    assert (tea, again, jam) == ({"item": "tea"}, {"item": "tea"}, {"item": "jam"})
    assert isinstance(bad, ToolRaised)
    assert shop.ran == [["tea", "bad", "jam"]]
    counts = reusing.counts
    assert (counts.asked, counts.shared, counts.made) == (4, 1, 1)
    assert (counts.batches, counts.fused) == (1, 3)


def test_without_purity_calls_are_fused_but_not_shared() -> None:
    shop = Shop()
    reusing = ReusingTools(shop.tools(batch=True, pure=False))
    assert at_once(reusing, "tea", "tea") == [{"item": "tea"}] * 2
    assert shop.ran == [["tea", "tea"]]


def test_a_lone_call_is_made_as_it_is() -> None:
    shop = Shop()
    reusing = ReusingTools(shop.tools(batch=True))
    assert at_once(reusing, "tea") == [{"item": "tea"}]
    assert shop.ran == ["tea"]


def test_the_window_says_what_comes_together() -> None:
    async def main(window_s: float) -> list[Any]:
        shop = Shop()
        reusing = ReusingTools(shop.tools(batch=True), window_s=window_s)

        async def later(item: str, delay_s: float) -> None:
            await asyncio.sleep(delay_s)
            await reusing.call("price", {"item": item})

        async with asyncio.TaskGroup() as group:
            for index, delay_s in enumerate((0.0, 0.0, 0.01, 0.04)):
                group.create_task(later(f"{index}", delay_s))
        return shop.ran

    assert FakeClock().run(main(0)) == [["0", "1"], "2", "3"]
    assert FakeClock().run(main(0.02)) == [["0", "1", "2"], "3"]
    assert FakeClock().run(main(0.05)) == [["0", "1", "2", "3"]]


def test_a_batch_holds_no_more_than_the_tool_takes() -> None:
    sizes: list[int] = []

    async def many(calls: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        sizes.append(len(calls))
        return [call["n"] for call in calls]

    from weft.agents.tools import Batch

    @tool(batch=Batch(many, 3))
    async def same(n: int) -> int:
        sizes.append(1)
        return n

    async def main() -> list[int]:
        reusing = ReusingTools(Toolbox(same))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(reusing.call("same", {"n": n})) for n in range(7)]
        return [task.result() for task in tasks]

    assert FakeClock().run(main()) == list(range(7))
    assert sizes == [3, 3, 1]


def test_a_batch_that_fails_fails_every_call_with_an_error_of_its_own() -> None:
    reusing = ReusingTools(Shop(broken=True).tools(batch=True))
    first, second = at_once(reusing, "tea", "jam")
    assert isinstance(first, ToolRaised)
    assert isinstance(second, ToolRaised)
    assert first is not second
    assert isinstance(second.__cause__, ValueError)


def test_a_call_given_up_before_the_batch_leaves_is_not_in_it() -> None:
    shop = Shop()
    reusing = ReusingTools(shop.tools(batch=True), window_s=1)

    async def main() -> None:
        calls = [
            asyncio.ensure_future(reusing.call("price", {"item": item})) for item in ("tea", "jam")
        ]
        await asyncio.sleep(0.1)
        calls[0].cancel()
        await asyncio.wait(calls)

    FakeClock().run(main())
    assert shop.ran == ["jam"]


# -- the store -----------------------------------------------------------------------------------


def test_results_outlive_the_run_when_asked_until_they_expire() -> None:
    clock = FakeClock()
    store, shop = MemoryStore(clock), Shop()

    async def main() -> None:
        for _ in range(2):
            await ReusingTools(shop.tools(), store=store, ttl_s=60).call("price", {"item": "tea"})
        clock.advance(100)
        reusing = ReusingTools(shop.tools(), store=store, ttl_s=60)
        await reusing.call("price", {"item": "tea"})
        assert reusing.counts.stored == 0

    clock.run(main())
    assert shop.ran == ["tea", "tea"]


@pytest.mark.parametrize(
    "other", [{"version": "2"}, {"version": ""}, {"version": "1", "pure": False}]
)
def test_another_version_is_another_tool_and_none_is_never_kept(other: dict[str, Any]) -> None:
    store, shop = MemoryStore(), Shop()

    async def main() -> None:
        await ReusingTools(shop.tools(version="1"), store=store).call("price", {"item": "tea"})
        for _ in range(2):
            await ReusingTools(shop.tools(**other), store=store).call("price", {"item": "tea"})

    FakeClock().run(main())
    assert len(shop.ran) == (2 if other["version"] == "2" else 3)


def test_with_a_store_in_a_file_similar_calls_are_still_fused(tmp_path: Path) -> None:
    sizes: list[int] = []

    def many(calls: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        sizes.append(len(calls))
        return [call["n"] for call in calls]

    @tool(batch=many, pure=True, version="1")
    def same(n: int) -> int:
        return n

    async def main(expected: int) -> None:
        store = SqliteStore(tmp_path / "store.db")
        # A long window on a busy machine: what is asserted is that lookups do not tear them apart.
        reusing = ReusingTools(Toolbox(same), store=store, window_s=0.5)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(reusing.call("same", {"n": n})) for n in range(5)]
        assert [task.result() for task in tasks] == list(range(5))
        assert reusing.counts.stored == expected
        await store.aclose()

    asyncio.run(main(0))
    asyncio.run(main(5))
    assert sizes == [5]


class BrokenStore:
    async def get(self, key: str) -> StoreEntry | None:
        raise StoreError("the disk is gone")

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        raise TypeError("cannot hold it")

    async def aclose(self) -> None:
        pass


def test_a_store_that_fails_is_told_and_done_without() -> None:
    lines: list[str] = []
    reusing = ReusingTools(Shop().tools(), store=BrokenStore())

    async def main() -> Any:
        with tool_logs(lines.append):
            return await reusing.call("price", {"item": "tea"})

    assert FakeClock().run(main()) == {"item": "tea"}
    assert len(lines) == 2
    assert "disk is gone" in lines[0]
    assert "not kept" in lines[1]


def test_unknown_tools_are_named_by_the_runner_itself() -> None:
    with pytest.raises(ToolNotFound, match="price"):
        asyncio.run(ReusingTools(Shop().tools()).call("prize", {}))


def test_settings_out_of_range_are_refused() -> None:
    for wrong in ({"window_s": -1.0}, {"kept": -1}, {"ttl_s": 0.0}):
        with pytest.raises(ValueError, match="negative"):
            ReusingTools(Toolbox(), **wrong)


def test_an_error_that_cannot_be_copied_is_told_all_the_same() -> None:
    class Stubborn(WeftError):
        def __init__(self, *, code: int) -> None:
            super().__init__(f"code {code}")

    @tool(pure=True)
    async def fail() -> int:
        await asyncio.sleep(1)
        raise Stubborn(code=7)

    async def main() -> list[Any]:
        reusing = ReusingTools(Toolbox(fail))
        tasks = [asyncio.ensure_future(reusing.call("fail", {})) for _ in range(2)]
        await asyncio.wait(tasks)
        return [task.exception() for task in tasks]

    assert all("code 7" in str(error) for error in FakeClock().run(main()))
