"""MCP servers that misbehave on purpose: nothing hangs, grows without bound, or stays behind."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests import manual_clock
from tests.integration.mcp_watch import Trace, alive, until
from weft.agents.mcp import McpTools
from weft.agents.tools import tool_logs
from weft.core.errors import ToolError, ToolLimitError, ToolNotFound, ToolRaised, ToolResultError
from weft.core.ids import is_name


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return Trace(tmp_path)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """These servers do not end when they are asked to; the tests need not wait long for them."""
    monkeypatch.setattr("weft.agents.mcp.process._GRACE_S", 0.3)
    monkeypatch.setattr("weft.agents.mcp.connection._CLOSING_S", 240.0)


def use(
    trace: Trace, mode: str, what: Callable[[McpTools], Awaitable[None]], **more: object
) -> None:
    """Do `what` with the server in a mode; afterwards no process of it is left."""

    async def main() -> None:
        async with McpTools(trace.hostile(mode, **more)) as tools:
            await what(tools)
        assert trace.pids
        assert not any(alive(pid) for pid in trace.pids)

    asyncio.run(main())


def test_a_strange_listing_leaves_the_tools_that_can_be_used(trace: Trace) -> None:
    lines: list[str] = []

    async def what(tools: McpTools) -> None:
        specs = {spec.name: spec for spec in tools.specs()}
        assert set(specs) == {
            *("fine", "rm_rf", "expression", "twice", "liar", "described"),
            *(name for name in specs if name.startswith("rm_rf_")),
        }
        assert len(specs) == 7
        assert all(is_name(name) and len(name) <= 64 for name in specs)
        assert "pattern" in str(specs["expression"].parameters)  # matched in linear time
        assert len(specs["described"].description) <= 4_000
        assert "\x1b" not in str(specs)
        reasons = {name: tools.refused[name] for name in sorted(tools.refused)}
        assert len(reasons) == 14, reasons
        assert "expands to over" in reasons["bomb"]
        assert "without end" in reasons["circle"]
        assert "nested deeper" in reasons["too_deep"]
        assert "more than" in reasons["too_wide"]
        assert "leads nowhere" in reasons["elsewhere"]
        assert "leads nowhere" in reasons["nowhere"]
        assert "listed twice" in reasons["fine"]
        with pytest.raises(ToolNotFound, match="nested deeper"):
            await tools.call("too_deep", {})

    with tool_logs(lines.append):
        use(trace, "strange", what)
    (line,) = lines
    assert line.startswith("hostile: left out, for they cannot be used: ")
    assert line.endswith(", and 9 more")


def test_results_are_checked_within_bounds(trace: Trace) -> None:
    async def what(tools: McpTools) -> None:
        assert "a" in await tools.call("twice", {})  # 2 ** 40 steps for who follows every reference
        with pytest.raises(ToolResultError, match='n: "not a number" is not of type "integer"'):
            await tools.call("liar", {})
        assert await tools.call("fine", {"a": 1}) == {"n": 1}

    use(trace, "strange", what)


@pytest.mark.parametrize("tool", ["huge", "huge_id_last"])
def test_a_huge_answer_fails_its_own_call_only(trace: Trace, tool: str) -> None:
    async def what(tools: McpTools) -> None:
        with pytest.raises(ToolLimitError, match="too large"):
            await tools.call(tool, {})
        assert await tools.call("fine", {}) == {"n": 1}
        assert len(trace.pids) == 1

    use(trace, "calls", what, max_result_bytes=100_000)


def test_answers_that_make_no_sense(trace: Trace) -> None:
    async def what(tools: McpTools) -> None:
        with pytest.raises(ToolResultError, match="not one that MCP knows"):
            await tools.call("no_content", {})
        assert await tools.call("wrong_id", {}) == "late but right"
        assert await tools.call("garbage", {}) == "after garbage"

    use(trace, "calls", what)


@pytest.mark.parametrize("tool", ["drip", "noise", "endless"])
def test_what_never_becomes_an_answer_ends_in_time(trace: Trace, tool: str) -> None:
    async def what(tools: McpTools) -> None:
        with pytest.raises(ToolError) as raised:
            await tools.call(tool, {})
        assert raised.value.retryable

    use(trace, "calls", what, timeout_s=1.0, max_result_bytes=100_000)


def test_a_flood_ends_the_server(trace: Trace) -> None:
    async def what(tools: McpTools) -> None:
        with pytest.raises(ToolRaised, match="answer nothing"):
            await tools.call("noise", {})
        await until(lambda: not alive(trace.pids[0]))

    use(trace, "calls", what)


@pytest.mark.parametrize(
    ("mode", "asked"), [("silent", "initialize|server/discover"), ("no_listing", "tools/list")]
)
def test_a_server_that_never_answers(trace: Trace, mode: str, asked: str) -> None:
    async def main() -> None:
        tools = McpTools(trace.hostile(mode, start_timeout_s=20.0))
        calling = asyncio.create_task(tools.call("anything", {}))
        await until(lambda: re.search(asked, trace.text) is not None)
        manual_clock.pass_time(20)
        with pytest.raises(ToolLimitError, match="did not answer within 20 s") as raised:
            await calling
        assert raised.value.retryable
        assert trace.pids
        assert not any(alive(pid) for pid in trace.pids)
        await tools.aclose()

    manual_clock.run(main())


def test_closing_while_it_starts_leaves_no_process(trace: Trace) -> None:
    async def main() -> None:
        tools = McpTools(trace.hostile("silent"))
        first, second = (asyncio.create_task(tools.call("fine", {})) for _ in range(2))
        await until(lambda: "initialize" in trace.text or "server/discover" in trace.text)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert not second.done()  # who else waits goes on waiting
        assert alive(trace.pids[0])
        await tools.aclose()
        with pytest.raises(ToolRaised, match="is closed"):
            await second
        assert len(trace.pids) == 1
        assert not alive(trace.pids[0])

    asyncio.run(main())


def test_a_server_that_ends_at_once(trace: Trace) -> None:
    async def main() -> None:
        tools = McpTools(trace.hostile("gone"))
        with pytest.raises(ToolRaised, match="hostile ended with status 7"):
            await tools.start()
        await tools.aclose()

    asyncio.run(main())


def test_a_listing_without_end(trace: Trace) -> None:
    async def what(tools: McpTools) -> None:
        assert tools.specs() == ()

    use(trace, "endless_pages", what)


def test_a_server_that_does_not_want_to_end(trace: Trace) -> None:
    async def what(tools: McpTools) -> None:
        assert await tools.call("fine", {}) == {"n": 1}

    use(trace, "stubborn", what)


def test_cancelling_returns_at_once_from_a_server_that_does_not_listen(trace: Trace) -> None:
    """Its pipe is full, so that not even the cancellation can be written."""

    async def what(tools: McpTools) -> None:
        drip = asyncio.create_task(tools.call("drip", {}))
        await until(trace.has("tools/call"))
        task = asyncio.create_task(tools.call("fine", {"a": "x" * 1_000_000}))
        for _ in range(10):
            await asyncio.sleep(0)
        for waiting in (task, drip):
            waiting.cancel()
            turns = 0
            while not waiting.done():
                await asyncio.sleep(0)
                turns += 1
            assert turns < 20

    use(trace, "calls", what)


def test_a_server_that_ignores_the_first_question_is_asked_the_older_one(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.agents.mcp.connection._DISCOVER_S", 0.2)

    async def what(tools: McpTools) -> None:
        assert "fine" in {spec.name for spec in tools.specs()}

    use(trace, "ignores", what, start_timeout_s=9.0)  # the SDK alone would wait for ten seconds
