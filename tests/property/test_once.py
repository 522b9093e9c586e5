"""No order is paid twice, whatever fails, hangs or is killed, and whoever tries again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.profile import examples
from tests.property.bank import Bank, cash, opened, visa, wire
from tests.property.payments import Payments, payments
from weft.agents.tools import Toolbox
from weft.core.errors import WeftError
from weft.core.ids import RunId
from weft.core.ports import ModelRequest
from weft.core.ports.journal import Record
from weft.core.values import Message
from weft.durability.calls import Confirmation
from weft.engine.graph.node import Retry
from weft.planner.routing import CallCost, RoutedTool, ToolGraph, ToolRouter, heal
from weft.testing import FakeClock, FakeModel, MemoryJournal
from weft.workflow import FlowResult
from weft.workflow.apps.flow_model import FlowModel
from weft.workflow.apps.flow_tool import FlowTool
from weft.workflow.history.run_history import read_history
from weft.workflow.history.unsettled_calls import unsettled_calls

PARTS = 4


class Mortal(MemoryJournal):
    """A journal of a process that is killed when it has written so many batches of records."""

    def __init__(self, clock: FakeClock, bank: Bank) -> None:
        super().__init__(clock)
        self._bank = bank
        self.left: int | None = None
        self.killed: asyncio.Event | None = None

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        if self.left == 0:
            self._bank.dead = True
            assert self.killed is not None
            self.killed.set()
        if not self._bank.dead:
            super().append(run, records, wait=wait)
            if self.left is not None:
                self.left -= 1


class Shop:
    """Runs of random workflows, part after part, over one bank."""

    def __init__(self, program: Payments) -> None:
        self.program = program
        self.bank = opened(program.ends)
        self.clock = FakeClock()
        self.journal = Mortal(self.clock, self.bank)
        self.flow = program.flow

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"models": {"small": FakeModel(self.program.script())}, "clock": self.clock, **more}

    def part(self, first: bool, kill_after: int | None, durability: str) -> FlowResult | None:
        """The next part of the run; None where it was killed."""
        self.bank.dead = False
        self.journal.left = kill_after

        async def main() -> FlowResult | None:
            self.journal.killed = asyncio.Event()
            said = self.settings(journal=self.journal, durability=durability)
            if first:
                run = self.flow.start({}, **said)
            else:
                run = self.flow.resume("last", confirmed=self.words(), **said)
            task = asyncio.ensure_future(run.wait())
            killed = asyncio.ensure_future(self.journal.killed.wait())
            await asyncio.wait([task, killed], return_when=asyncio.FIRST_COMPLETED)
            if not self.bank.dead:
                killed.cancel()
                return await task
            task.cancel()
            await asyncio.wait([task])
            return None

        return self.clock.run(main())

    @property
    def succeeded(self) -> bool:
        """Whether nothing is left to do."""
        return any(summary.standing == "succeeded" for summary in self.journal.runs())

    def words(self) -> dict[str, Confirmation]:
        """What a person says who looks into the ledger before the run goes on."""
        story = read_history(self.journal, self.journal.runs()[0].run)
        said = {}
        for call in unsettled_calls(story.records):
            order = call.called.record.arguments["order"]  # type: ignore[union-attr]
            done = order in self.bank.ledger
            said[call.where] = Confirmation("done", f"visa paid {order}") if done else _REPEAT
        return said


_REPEAT = Confirmation("repeat")


def check_recorded(program: Payments, kills: Sequence[int | None], durability: str) -> None:
    """Run to the end, through the deaths of its process."""
    shop = Shop(program)
    for number, kill in enumerate((*kills, None)):
        if shop.succeeded:
            break
        result = shop.part(number == 0, kill, durability)
        assert not shop.bank.twice, (shop.bank.twice, kill)
        if number == 0 and result is not None:
            assert bool(shop.bank.unknown) == any(
                call.end != "repeated" for call in result.unsettled
            )


def check_unrecorded(program: Payments) -> None:
    """Run without a journal."""
    shop = Shop(program)
    result = shop.clock.run(shop.flow.run(**shop.settings()))
    assert not shop.bank.twice
    assert bool(shop.bank.unknown) == any(call.end != "repeated" for call in result.unsettled)


def check_served(program: Payments, way: str) -> None:
    """Run as a tool of others, as `weft mcp` does, or as a model, as `weft gateway` does."""
    shop = Shop(program)
    models = {"small": FakeModel(program.script())}
    served = FlowTool(shop.flow, models) if way == "mcp" else FlowModel(shop.flow, models)

    async def main() -> None:
        asked = ModelRequest((Message("user", "pay"),))
        events = served.call({}) if isinstance(served, FlowTool) else served.generate(asked)
        try:
            async for _ in events:
                pass
        except WeftError:
            return
        finally:
            await served.aclose()

    shop.clock.run(main())
    assert not shop.bank.twice


def check_healed(program: Payments, retry: int) -> None:
    """One errand over three tools that can all do it, outside of a workflow."""
    bank = opened(program.ends)
    routed = [
        RoutedTool(
            name,
            gives=("paid",),
            given={"order": "o0"},
            cost=CallCost(0.0, money),
            timeout_s=1.0,
            retry=Retry(retry, 0.1),
        )
        for money, name in enumerate(("visa", "cash", "wire"), 1)
    ]
    router = ToolRouter(ToolGraph(routed), Toolbox(visa, cash, wire))

    async def main() -> None:
        try:
            await heal(router, "paid")
        except WeftError:
            return

    clock = FakeClock()
    clock.run(main())
    assert not bank.twice


KILLS = st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=PARTS - 1)
DURABILITIES = st.sampled_from(["sync", "async", "exit"])
WAYS = st.sampled_from(["recorded", "recorded", "unrecorded", "mcp", "gateway", "healed"])


def check(
    program: Payments, way: str, kills: Sequence[int | None], durability: str, retry: int
) -> None:
    match way:
        case "recorded":
            check_recorded(program, kills, durability)
        case "unrecorded":
            check_unrecorded(program)
        case "mcp" | "gateway":
            check_served(program, way)
        case _:
            check_healed(program, retry)


ANY = (payments(), WAYS, KILLS, DURABILITIES, st.integers(1, 3))


@examples(200)
@given(*ANY)
def test_no_order_is_paid_twice(
    program: Payments, way: str, kills: list[int | None], durability: str, retry: int
) -> None:
    check(program, way, kills, durability, retry)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(*ANY)
def test_nor_in_ten_thousand_programs(
    program: Payments, way: str, kills: list[int | None], durability: str, retry: int
) -> None:
    check(program, way, kills, durability, retry)
