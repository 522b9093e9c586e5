"""Any mixture of calls, pauses, failures and cancellations: the results are those without reuse."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.agents.reuse import ReusingTools
from weft.agents.tools import Batch, Toolbox, tool
from weft.core.ports import ToolRunner
from weft.testing import FakeClock, MemoryStore


@dataclass(frozen=True)
class Asked:
    """A call: when it comes, which tool, its argument, and after how long its caller gives up."""

    at: int
    tool: str
    n: int
    gives_up: int | None


CALLS = st.lists(
    st.builds(
        Asked,
        st.integers(0, 6),
        st.sampled_from(["pure", "batched", "both", "plain"]),
        st.integers(0, 4),
        st.one_of(st.none(), st.integers(0, 8)),
    ),
    max_size=12,
)


class Workshop:
    """Four tools that differ in what they promise; 3 fails, and each takes some time."""

    def __init__(self) -> None:
        self.made: dict[str, list[int]] = {"pure": [], "batched": [], "both": [], "plain": []}

    def tools(self) -> Toolbox:
        return Toolbox(
            *(
                self._tool(name, pure, batch)
                for name, pure, batch in (
                    ("pure", True, False),
                    ("batched", False, True),
                    ("both", True, True),
                    ("plain", False, False),
                )
            )
        )

    def _tool(self, name: str, pure: bool, batch: bool) -> Any:
        async def one(n: int) -> list[int]:
            """Work."""
            self.made[name].append(n)
            await asyncio.sleep(0.3 * n + 0.05)
            if n == 3:
                raise ValueError(f"{name} cannot do 3")
            return [n, n * n]

        async def many(calls: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
            self.made[name] += [call["n"] for call in calls]
            await asyncio.sleep(max(0.3 * call["n"] + 0.05 for call in calls))
            return [
                ValueError(f"{name} cannot do 3") if n == 3 else [n, n * n]
                for n in (call["n"] for call in calls)
            ]

        form = Batch(many, 3) if batch else None
        return tool(name=name, pure=pure, batch=form, version="1")(one)


def outcome(asked: Asked, task: asyncio.Task[Any]) -> Any:
    if task.cancelled():
        return "cancelled"
    error = task.exception()
    return task.result() if error is None else (type(error).__name__, str(error))


async def play(tools: ToolRunner, calls: list[Asked]) -> list[Any]:
    async def caller(asked: Asked) -> Any:
        await asyncio.sleep(asked.at / 4)
        return await tools.call(asked.tool, {"n": asked.n})

    async def give_up(asked: Asked, task: asyncio.Task[Any]) -> None:
        if asked.gives_up is not None:
            await asyncio.sleep(asked.gives_up / 4 + 0.01)
            task.cancel()

    tasks = [asyncio.ensure_future(caller(asked)) for asked in calls]
    async with asyncio.TaskGroup() as group:
        for asked, task in zip(calls, tasks, strict=True):
            group.create_task(give_up(asked, task))
    if tasks:
        await asyncio.wait(tasks)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return [outcome(asked, task) for asked, task in zip(calls, tasks, strict=True)]


@given(CALLS, st.sampled_from([0.0, 0.02, 0.3]), st.booleans())
@examples(150)
def test_results_are_those_without_reuse(calls: list[Asked], window_s: float, stored: bool) -> None:
    workshop = Workshop()
    expected = FakeClock().run(play(Workshop().tools(), calls))
    clock = FakeClock()
    store = MemoryStore(clock) if stored else None
    reusing = ReusingTools(workshop.tools(), store=store, window_s=window_s, clock=clock)
    found = clock.run(play(reusing, calls))
    for asked, with_reuse, without in zip(calls, found, expected, strict=True):
        # Who waits for an earlier call, or for a batch, may be served sooner or later than alone.
        if asked.gives_up is None or "cancelled" not in (with_reuse, without):
            assert with_reuse == without
    for name in ("pure", "both"):
        made = workshop.made[name]
        asked_for = [asked.n for asked in calls if asked.tool == name]
        assert set(made) <= set(asked_for)
        if all(asked.gives_up is None for asked in calls):
            kept = [n for n in made if n != 3]
            assert sorted(kept) == sorted({n for n in asked_for if n != 3})
    if all(asked.gives_up is None for asked in calls):
        for name in ("batched", "plain"):
            assert sorted(workshop.made[name]) == sorted(
                asked.n for asked in calls if asked.tool == name
            )


@given(CALLS)
@examples(60)
def test_a_second_run_with_the_same_store_makes_no_pure_call_again(calls: list[Asked]) -> None:
    patient = [Asked(asked.at, asked.tool, asked.n, None) for asked in calls if asked.n != 3]
    clock = FakeClock()
    store = MemoryStore(clock)
    first = clock.run(play(ReusingTools(Workshop().tools(), store=store, clock=clock), patient))
    workshop = Workshop()
    again = clock.run(play(ReusingTools(workshop.tools(), store=store, clock=clock), patient))
    assert again == first
    assert not workshop.made["pure"]
    assert not workshop.made["both"]
