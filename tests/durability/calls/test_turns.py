"""Ends are given in recorded order, whichever call comes first; nothing waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from hypothesis import given
from hypothesis import strategies as st

from weft.durability.calls.cassette import Due
from weft.durability.calls.turns import Turns
from weft.testing import FakeClock

PATIENCE_S = 1.0


def given_in(
    orders: Sequence[int],
    *,
    per_group: int = 1,
    leaving: Collection[int] = (),
    staying: Collection[int] = (),
) -> list[str]:
    """What calls do that come in `orders` in one second: `end 3` is given, `act 3` follows it.

    Calls of `leaving` are cancelled instead of coming; those of `staying` come two seconds later.
    """
    clock = FakeClock()
    done: list[str] = []

    async def play(turns: Turns, order: int) -> None:
        with turns.begin(Due(order, order // per_group, 0.0)) as turn:
            for _ in range(orders.index(order) + 1):
                await asyncio.sleep(0)
            if order in leaving:
                return
            if order in staying:
                await clock.sleep(2 * PATIENCE_S)
            await turns.wait(turn)
        done.append(f"end {order}")
        for _ in range(5):
            await asyncio.sleep(0)
        done.append(f"act {order}")

    async def main() -> None:
        turns = Turns(clock)
        async with asyncio.TaskGroup() as group:
            for order in orders:
                group.create_task(play(turns, order))

    clock.run(main())
    return done


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)))
def test_ends_come_in_recorded_order_with_what_follows_each(
    orders: list[int], leaving: set[int]
) -> None:
    stayed = sorted(set(orders) - leaving)
    assert given_in(orders, leaving=leaving) == [
        f"{what} {order}" for order in stayed for what in ("end", "act")
    ]


@given(st.permutations(range(6)))
def test_ends_of_a_group_come_before_what_follows_them(orders: list[int]) -> None:
    assert given_in(orders, per_group=3) == [
        f"{what} {order}"
        for group in ((0, 1, 2), (3, 4, 5))
        for what in ("end", "act")
        for order in group
    ]


def test_a_call_that_is_not_read_on_holds_the_others_up_for_a_second() -> None:
    ends = [each for each in given_in([2, 0, 1], staying=[0]) if each.startswith("end")]
    assert ends == ["end 2", "end 1", "end 0"]
