"""Sources that misbehave the way real ones do: slow, broken, flaky, or wrong."""

import asyncio

import weft
from weft.errors import ToolRaised

PRICES = {"copper": 9.21, "silver": 31.4, "tin": 28.9}
calls = 0


@weft.tool
async def slow_mirror(metal: str) -> float:
    """The price, after longer than anybody wants to wait."""
    await asyncio.sleep(60)
    return PRICES[metal]


@weft.tool
async def broken_mirror(metal: str) -> float:
    """Always fails."""
    raise ToolRaised(f"the mirror has no page for {metal}")


@weft.tool
async def good_mirror(metal: str) -> float:
    """The price, soon."""
    await asyncio.sleep(0.05)
    return PRICES[metal]


@weft.tool
async def flaky_rate(currency: str) -> float:
    """Fails the first time it is called, then works."""
    global calls  # noqa: PLW0603 - the memory of this toy service
    calls += 1
    if calls == 1:
        raise ToolRaised("the rate service hiccuped", retryable=True)
    return {"EUR": 0.92, "CHF": 0.88}[currency]


@weft.tool
async def stock(metal: str) -> int:
    """Tonnes in stock; tin is not listed."""
    return {"copper": 120, "silver": 4}[metal]


def total(stocks: list[int]) -> int:
    """Everything that is known to be in stock."""
    return sum(stocks)
