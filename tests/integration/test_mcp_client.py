"""The MCP client against real server processes, over both transports."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests import manual_clock
from tests.integration.mcp_watch import Trace, alive, until
from weft.agents.mcp import McpServer, McpTools
from weft.agents.tools import tool_logs
from weft.core.errors import (
    BuildError,
    ToolArgumentError,
    ToolLimitError,
    ToolNotFound,
    ToolRaised,
)

Use = Callable[[McpTools], Awaitable[None]]
UseTraced = Callable[[McpTools, Trace], Awaitable[None]]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is told to end writes into its trace first, and may be slow."""
    monkeypatch.setattr("weft.agents.mcp.process._GRACE_S", 60.0)
    monkeypatch.setattr("weft.agents.mcp.connection._CLOSING_S", 240.0)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return Trace(tmp_path)


async def over_stdio(trace: Trace, use: Use, **more: object) -> None:
    async with McpTools(trace.peer(**more)) as tools:
        await use(tools)
    assert trace.pids
    assert not any(alive(pid) for pid in trace.pids)


Over = Callable[..., Any]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Trace]]:
    """One server at an address for all tests that leave it as it was."""
    trace = Trace(tmp_path_factory.mktemp("house"))
    with trace.peer_over_http() as (url, _):
        yield url, trace


@pytest.fixture(params=["stdio", "http"])
def over(request: pytest.FixtureRequest, trace: Trace) -> Over:
    """Uses the friendly server over one of the transports, with its trace."""
    if request.param == "stdio":

        async def stdio(use: UseTraced, **more: object) -> None:
            await over_stdio(trace, lambda tools: use(tools, trace), **more)

        return stdio
    url, shared = request.getfixturevalue("house")

    async def http(use: UseTraced, **more: object) -> None:
        async with McpTools(McpServer("peer", url=url, **more)) as tools:  # type: ignore[arg-type]
            await use(tools, shared)

    return http


def test_tools_are_listed_and_called(over: Over) -> None:
    async def use(tools: McpTools, trace: Trace) -> None:
        specs = {spec.name: spec for spec in tools.specs()}
        assert list(specs)[:2] == ["add", "shout_it_out"]
        assert specs["add"].description == "Add two numbers."
        assert specs["add"].result is not None
        assert specs["add"].result["type"] == "integer"
        assert await tools.call("add", {"a": 2, "b": 3}) == 5
        assert await tools.call("shout_it_out", {"text": "hi"}) == "HI"
        with pytest.raises(ToolRaised, match="no luck") as raised:
            await tools.call("fail", {"why": "no luck"})
        assert not raised.value.retryable
        with pytest.raises(ToolArgumentError, match='"a" is a required'):
            await tools.call("add", {"b": 3})
        with pytest.raises(ToolNotFound, match="did you mean 'add'"):
            await tools.call("ad", {})

    asyncio.run(over(use))


def test_cancelling_the_caller_is_seen_by_the_server(over: Over) -> None:
    async def use(tools: McpTools, trace: Trace) -> None:
        task = asyncio.create_task(tools.call("wait", {"name": "first"}))
        await until(trace.has("first started"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(trace.has("first cancelled"))
        assert await tools.call("add", {"a": 1}) == 2

    asyncio.run(over(use))


def test_a_call_that_takes_too_long_is_cancelled(over: Over) -> None:
    async def use(tools: McpTools, trace: Trace) -> None:
        calling = asyncio.create_task(tools.call("wait", {"name": "late"}))
        await until(trace.has("late started"))
        manual_clock.pass_time(20)
        with pytest.raises(ToolLimitError, match=r"longer than its 20 s") as raised:
            await calling
        assert raised.value.retryable
        await until(trace.has("late cancelled"))

    manual_clock.run(over(use, timeout_s=20.0))


def test_progress_becomes_log_lines(over: Over) -> None:
    lines: list[str] = []

    async def use(tools: McpTools, trace: Trace) -> None:
        with tool_logs(lines.append):
            assert await tools.call("steps", {"count": 3}) == "done"

    asyncio.run(over(use))
    assert [line[:6] for line in lines] == ["1 of 3", "2 of 3", "3 of 3"]
    assert not any("\x1b" in line for line in lines)


def test_calls_run_at_the_same_time(over: Over) -> None:
    async def use(tools: McpTools, trace: Trace) -> None:
        waiting = [asyncio.create_task(tools.call("wait", {"name": name})) for name in "ab"]
        await until(lambda: trace.has("a started")() and trace.has("b started")())
        assert await tools.call("add", {"a": 1}) == 2
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)

    asyncio.run(over(use))


def test_a_result_that_is_too_large(over: Over) -> None:
    async def use(tools: McpTools, trace: Trace) -> None:
        for size in (2_000, 4_000_000):  # above what is allowed; above what is read at all
            with pytest.raises(ToolLimitError):
                await tools.call("big", {"size": size})
        assert await tools.call("add", {"a": 1}) == 2
        assert len(await tools.call("big", {"size": 500})) == 500

    asyncio.run(over(use, max_result_bytes=1_000))


def test_the_environment_is_withheld(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEER_TOKEN", "top-secret-value")
    monkeypatch.setenv("PEER_OTHER", "not for it")

    async def use(tools: McpTools) -> None:
        assert await tools.call("environment", {"name": "PEER_TOKEN"}) == "top-secret-value"
        assert await tools.call("environment", {"name": "PEER_OTHER"}) == "not there"
        with pytest.raises(ToolRaised) as raised:
            await tools.call("die", {})
        assert "the last words" in str(raised.value)
        assert "top-secret-value" not in str(raised.value)
        assert "$PEER_TOKEN" in str(raised.value)

    asyncio.run(over_stdio(trace, use, env_from=("PEER_TOKEN",)))


def test_a_variable_that_is_not_set_is_named(trace: Trace) -> None:
    with pytest.raises(BuildError, match="PEER_MISSING is not set"):
        McpTools(trace.peer(env_from=("PEER_MISSING",)))


def test_a_server_that_dies_fails_what_is_under_way_and_is_started_again(trace: Trace) -> None:
    async def use(tools: McpTools) -> None:
        other = asyncio.create_task(tools.call("wait", {"name": "other"}))
        await until(trace.has("other started"))
        with pytest.raises(ToolRaised, match="ended with status 3") as raised:
            await tools.call("die", {})
        assert raised.value.retryable
        with pytest.raises(ToolRaised, match="during the call"):
            await other
        assert trace.text.count("other started") == 1  # nothing is repeated on its own
        assert await tools.call("add", {"a": 1}) == 2
        assert len(trace.pids) == 2

    asyncio.run(over_stdio(trace, use))


def test_a_tool_that_only_reads_is_called_once_more(trace: Trace) -> None:
    lines: list[str] = []

    async def use(tools: McpTools) -> None:
        with tool_logs(lines.append):
            assert await tools.call("die_once", {}) == "alive"

    asyncio.run(over_stdio(trace, use))
    assert lines == ["the connection to peer was lost; calling once more"]


def test_a_server_that_always_dies_is_given_up(trace: Trace) -> None:
    async def use(tools: McpTools) -> None:
        for _ in range(2):
            with pytest.raises(ToolRaised, match="during the call"):
                await tools.call("die", {})
        with pytest.raises(ToolRaised, match="2 times in a row") as raised:
            await tools.call("die", {})
        assert not raised.value.retryable

    asyncio.run(over_stdio(trace, use, restarts=1))
    assert len(trace.pids) == 2


def test_a_server_that_was_given_up_gets_another_chance(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.agents.mcp.reconnect._PAUSE_S", 0.0)

    async def use(tools: McpTools) -> None:
        with pytest.raises(ToolRaised, match="during the call"):
            await tools.call("die", {})
        assert await tools.call("add", {"a": 1}) == 2

    asyncio.run(over_stdio(trace, use, restarts=0))


def test_an_address_that_comes_back(trace: Trace) -> None:
    """The server is killed in the middle of a call, and another one takes its place."""

    async def main() -> None:
        with trace.peer_over_http() as (url, process):
            tools = McpTools(McpServer("peer", url=url, restarts=50))
            await tools.start()
            calling = asyncio.create_task(tools.call("wait", {"name": "lost"}))
            await until(trace.has("lost started"))
            process.send_signal(signal.SIGKILL)
            with pytest.raises(ToolRaised) as raised:
                await calling
            assert raised.value.retryable
            with pytest.raises(ToolRaised, match="cannot be reached") as raised:
                await tools.call("add", {"a": 1})
            assert raised.value.retryable
        port = int(url.split(":")[2].split("/")[0])
        with trace.peer_over_http(port):
            async with asyncio.timeout(120):
                assert await call_until_it_works(tools, "add", {"a": 1}) == 2
            await tools.aclose()

    asyncio.run(main())


async def call_until_it_works(tools: McpTools, name: str, arguments: dict[str, Any]) -> Any:
    while True:
        try:
            return await tools.call(name, arguments)
        except ToolRaised as error:
            if not error.retryable:
                raise


def test_effects_are_those_of_tools_that_there_are(trace: Trace) -> None:
    async def use(tools: McpTools) -> None:
        effects = {spec.name: spec.effect for spec in tools.specs()}
        assert effects["add"] == "once"
        assert set(effects.values()) > {"once"}

    async def main() -> None:
        await over_stdio(trace, use, effects={"add": "once"})
        tools = McpTools(trace.peer(effects={"ad": "once"}))
        with pytest.raises(ToolNotFound, match="no tool 'ad'") as raised:
            await tools.start()
        await tools.aclose()
        assert "did you mean 'add'?" in str(raised.value)

    asyncio.run(main())


def test_nobody_is_there() -> None:
    async def main() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and not listening
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
            tools = McpTools(McpServer("nobody", url=url))
            with pytest.raises(ToolRaised, match="nobody cannot be reached") as raised:
                await tools.call("add", {})
            assert raised.value.retryable
            await tools.aclose()

    asyncio.run(main())


def test_a_program_that_is_not_there() -> None:
    async def main() -> None:
        tools = McpTools(McpServer("absent", command=("weft-no-such-program",)))
        with pytest.raises(ToolRaised, match="absent cannot be started") as raised:
            await tools.start()
        assert not raised.value.retryable
        await tools.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["child", "daemon"])
def test_children_of_the_server_end_with_it(kind: str, trace: Trace) -> None:
    children: list[int] = []

    async def use(tools: McpTools) -> None:
        children.append(await tools.call(kind, {}))
        assert alive(children[0])

    async def main() -> None:
        await over_stdio(trace, use)
        await until(lambda: not alive(children[0]))

    asyncio.run(main())


def test_cancelling_the_owner_leaves_no_process(trace: Trace) -> None:
    async def main() -> None:
        async def use(tools: McpTools) -> None:
            await tools.call("wait", {"name": "owner"})

        task = asyncio.create_task(over_stdio(trace, use))
        await until(trace.has("owner started"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not any(alive(pid) for pid in trace.pids))
        assert trace.has("owner cancelled")()

    asyncio.run(main())


def test_headers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that answers 401 to everybody hears the key, and no message shows it."""
    monkeypatch.setenv("PEER_KEY", "sesame-open-up")
    heard: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heard.append(head.decode().lower())
        writer.write(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        page = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with page:
            url = f"http://127.0.0.1:{page.sockets[0].getsockname()[1]}/mcp"
            tools = McpTools(McpServer("locked", url=url, api_key_env="PEER_KEY"))
            with pytest.raises(ToolRaised, match="HTTP 401") as raised:
                await tools.start()
            assert not raised.value.retryable
            assert "api_key_env" in str(raised.value)
            assert "sesame" not in str(raised.value)
            await tools.aclose()

    asyncio.run(main())
    assert heard
    assert all("authorization: bearer sesame-open-up" in head for head in heard)


def test_redirects_to_other_places_are_not_followed() -> None:
    async def main() -> None:
        visited: list[bytes] = []

        async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            visited.append(await reader.read(10))
            writer.close()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(
                b"HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:%d/mcp\r\n"
                b"content-length: 0\r\nconnection: close\r\n\r\n" % port
            )
            await writer.drain()
            writer.close()

        elsewhere = await asyncio.start_server(other, "127.0.0.1", 0)
        port = elsewhere.sockets[0].getsockname()[1]
        page = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with page, elsewhere:
            url = f"http://127.0.0.1:{page.sockets[0].getsockname()[1]}/mcp"
            tools = McpTools(McpServer("moved", url=url))
            with pytest.raises(ToolRaised, match="moved"):
                await tools.start()
            await tools.aclose()
        assert not visited

    asyncio.run(main())


def test_httpx_is_what_the_sdk_brings() -> None:
    """Where the SDK changes its HTTP client, the bounds on answers have to move with it."""
    from mcp.client import streamable_http

    assert streamable_http.httpx2 is httpx2
