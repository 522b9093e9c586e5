"""The trace that a call is part of: kept for a task and what it starts, and never wrong."""

from __future__ import annotations

import asyncio

import pytest

from weft.core.call_context import set_trace_headers, trace_headers

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_it_holds_in_the_task_and_in_those_that_it_starts() -> None:
    async def named() -> dict[str, str]:
        return dict(trace_headers())

    async def inside() -> dict[str, str]:
        set_trace_headers({"traceparent": PARENT, "tracestate": "a=1", "cookie": "x"})
        return await asyncio.create_task(named())

    async def main() -> None:
        assert await asyncio.create_task(inside()) == {"traceparent": PARENT, "tracestate": "a=1"}
        assert await named() == {}

    asyncio.run(main())


@pytest.mark.parametrize(
    "parent",
    [
        *("", "x", PARENT.upper(), PARENT + "-00", PARENT + "\n", "ff" + PARENT[2:]),
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
    ],
)
def test_what_is_no_trace_is_none(parent: str) -> None:
    async def main() -> None:
        set_trace_headers({"traceparent": PARENT})
        set_trace_headers({"traceparent": parent, "tracestate": "a=1"})
        assert dict(trace_headers()) == {}

    asyncio.run(main())


def test_a_state_that_is_no_header_is_left_out() -> None:
    async def main() -> None:
        set_trace_headers({"traceparent": PARENT, "tracestate": "a=1\r\nx: y"})
        assert dict(trace_headers()) == {"traceparent": PARENT}

    asyncio.run(main())
