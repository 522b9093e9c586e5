"""Tools that pay, each order once, and how their calls end. For `test_once.py` of this folder."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import weft
from weft.core.errors import ToolRaised, ToolResultError

End = Literal["paid", "late", "hangs", "breaks", "fails", "lies", "declines"]
ENDS: Final[tuple[End, ...]] = ("paid", "late", "hangs", "breaks", "fails", "lies", "declines")


@dataclass
class Bank:
    """Pays orders. `ends` says how the calls for an order end, one after the other.

    `ledger` has every payment, `unknown` those that did not return, `dead` says that the process
    has been killed: nothing acts any more.
    """

    ends: Mapping[str, Sequence[End]]
    ledger: list[str] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    dead: bool = False
    calls: Counter[str] = field(default_factory=Counter)

    async def pay(self, tool: str, order: str) -> str:
        """Pay `order`, or not."""
        if self.dead:
            await asyncio.Event().wait()
        number = self.calls[order]
        self.calls[order] += 1
        ends = self.ends.get(order, ())
        end = ends[number] if number < len(ends) else "paid"
        if end == "declines":
            raise weft.NotDone(f"{order} was declined", retryable=True)
        self.ledger.append(order)
        self.unknown.add(order)
        if end == "lies":
            raise ToolResultError(f"{tool} wrote no receipt")
        if end in ("breaks", "fails"):
            raise ToolRaised("the line broke", retryable=end == "breaks")
        await asyncio.sleep({"late": 0.5, "hangs": 3600.0}.get(end, 0.0))
        self.unknown.discard(order)
        return f"{tool} paid {order}"

    @property
    def twice(self) -> list[str]:
        """Orders that were paid more than once."""
        return [order for order, times in Counter(self.ledger).items() if times > 1]


_OPEN: list[Bank] = []


def opened(ends: Mapping[str, Sequence[End]]) -> Bank:
    """The bank that the tools belong to from now on."""
    _OPEN[:] = [Bank(ends)]
    return _OPEN[0]


@weft.tool(effect="once", approve=False)
async def visa(order: str) -> str:
    """Pay by card."""
    return await _OPEN[0].pay("visa", order)


@weft.tool(effect="once", approve=False)
async def cash(order: str) -> str:
    """Pay by hand."""
    return await _OPEN[0].pay("cash", order)


@weft.tool(effect="once", approve=False)
async def wire(order: str) -> str:
    """Pay by wire."""
    return await _OPEN[0].pay("wire", order)
