"""Workflows as tools: `weft mcp` in a process of its own, driven by the official MCP client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import CallToolResult

from tests.integration.mcp_watch import HERE, Trace, alive, until

ROOT = HERE.parents[1]
TOOLS = '''
import asyncio, os, sys
from pathlib import Path
import weft

print("printed while the file is imported")
TRACE = Path(os.environ["TRACE"])

def trace(line):
    with TRACE.open("a") as file:
        file.write(line + "\\n")

@weft.tool
async def greet(name: str) -> str:
    """Greet."""
    print("printed by a tool")
    os.write(1, b"written to the descriptor\\n")
    return f"hello {name}"

@weft.tool
async def wait(name: str) -> str:
    """Wait for ever."""
    trace(f"pid {os.getpid()}")
    trace(f"{name} started")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        trace(f"{name} cancelled")
        raise
    return ""

@weft.tool
def broken() -> str:
    """Fail."""
    raise ValueError("no luck")
'''
FLOWS = {
    "greeting": """
name: greeting
description: Greets somebody.
inputs:
  name: {type: string, description: Whom.}
  times: {type: integer, default: 1}
nodes:
  hello: {tool: "./tools.py:greet", with: {name: "{{ name }}"}}
  many: {value: "{{ [hello] * times }}"}
outputs: {text: "{{ hello }}", all: "{{ many }}"}
""",
    "waiting": """
name: waiting
inputs: {name: string}
nodes:
  first: {value: 1}
  never: {tool: "./tools.py:wait", with: {name: "{{ name }}"}, after: first}
outputs: {never: "{{ never }}"}
""",
    "failing": """
name: failing
nodes:
  good: {value: 1}
  bad: {tool: "./tools.py:broken"}
outputs: {good: "{{ good }}", bad: "{{ bad }}"}
""",
}


def written(folder: Path) -> Trace:
    (folder / "tools.py").write_text(TOOLS)
    for name, text in FLOWS.items():
        (folder / f"{name}.yaml").write_text(text)
    return Trace(folder)


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client lets a slow server end in its own time, in which that writes into its trace."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 120.0)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 120.0)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return written(tmp_path)


def command(trace: Trace, *words: str) -> list[str]:
    files = [str(trace.path.parent / f"{name}.yaml") for name in FLOWS]
    return [sys.executable, "-m", "weft", "mcp", *files, *words]


def environment(trace: Trace) -> dict[str, str]:
    return {"TRACE": str(trace.path), "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}


def over_stdio(trace: Trace) -> Client:
    """The official client, with a `weft mcp` of its own."""
    program, *words = command(trace)
    server = StdioServerParameters(command=program, args=words, env=environment(trace))
    return Client(server, cache=None)


@contextmanager
def listening(trace: Trace, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`weft mcp --http` on a free port: its address and its process."""
    process = subprocess.Popen(
        command(trace, "--http", "--port", "0", *words),
        env={**os.environ, **environment(trace)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as said:
        try:
            yield said.readline().removeprefix("listening on ").strip(), process
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Trace]]:
    """One server at an address for all tests that change nothing in it."""
    trace = written(tmp_path_factory.mktemp("house"))
    with listening(trace, "--allow-origin", "https://mine.example") as (url, _):
        yield url, trace


def said(result: CallToolResult) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)


async def workflows_are_tools(client: Client, trace: Trace) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == list(FLOWS)
    assert tools["greeting"].description == "Greets somebody."
    assert tools["greeting"].input_schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Whom."},
            "times": {"type": "integer", "default": 1},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert tools["greeting"].output_schema is not None
    assert tools["greeting"].output_schema["properties"]["text"]["type"] == "string"
    result = await client.call_tool("greeting", {"name": "you", "times": 2})
    assert not result.is_error
    assert result.structured_content == {"text": "hello you", "all": ["hello you"] * 2}
    assert said(result) == '{"text": "hello you", "all": ["hello you", "hello you"]}'


async def nodes_that_end_are_progress(client: Client, trace: Trace) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    await client.call_tool("greeting", {"name": "you"}, progress_callback=hear)
    await until(lambda: len(heard) >= 2)
    assert heard == [(1.0, 2.0, "hello finished"), (2.0, 2.0, "many finished")]


async def a_call_that_is_cancelled_ends_its_run(client: Client, trace: Trace) -> None:
    task = asyncio.create_task(client.call_tool("waiting", {"name": "it"}))
    await until(trace.has("it started"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(trace.has("it cancelled"))


async def several_runs_go_on_at_once(client: Client, trace: Trace) -> None:
    tasks = [asyncio.create_task(client.call_tool("waiting", {"name": n})) for n in "ab"]
    await until(lambda: trace.has("a started")() and trace.has("b started")())
    assert not (await client.call_tool("greeting", {"name": "you"})).is_error
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def what_goes_wrong_is_an_error_of_the_tool(client: Client, trace: Trace) -> None:
    failed = await client.call_tool("failing", {})
    assert failed.is_error
    assert "bad" in said(failed)
    assert "no luck" in said(failed)
    wrong = await client.call_tool("greeting", {"nmae": "you"})
    assert wrong.is_error
    assert "`name` is missing" in said(wrong)
    with pytest.raises(MCPError, match="no tool"):
        await client.call_tool("nothing", {})


SCRIPT = (
    workflows_are_tools,
    nodes_that_end_are_progress,
    a_call_that_is_cancelled_ends_its_run,
    several_runs_go_on_at_once,
    what_goes_wrong_is_an_error_of_the_tool,
)


def test_the_script_over_stdio(trace: Trace) -> None:
    """All of it with one client; and when that leaves, what is under way ends."""

    async def main() -> None:
        async with asyncio.timeout(300):
            async with over_stdio(trace) as client:
                for part in SCRIPT:
                    await part(client, trace)
                left = asyncio.create_task(client.call_tool("waiting", {"name": "left"}))
                await until(trace.has("left started"))
            with pytest.raises((MCPError, asyncio.CancelledError)):
                await left
            await until(trace.has("left cancelled"))
            await until(lambda: not any(alive(pid) for pid in trace.pids))

    asyncio.run(main())


@pytest.mark.parametrize("part", SCRIPT, ids=lambda part: part.__name__)
def test_the_script_over_http(
    house: tuple[str, Trace], part: Callable[[Client, Trace], Awaitable[None]]
) -> None:
    async def main() -> None:
        async with asyncio.timeout(300), Client(house[0], cache=None) as client:
            await part(client, house[1])

    asyncio.run(main())


def test_stdout_is_the_protocols_alone(trace: Trace) -> None:
    """Whatever is printed while files are imported, by tools, or past Python."""
    info = {"name": "by hand", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    call = {"name": "greeting", "arguments": {"name": "you"}}
    process = subprocess.Popen(
        command(trace),
        env={**os.environ, **environment(trace)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    answers = []
    for number, (method, params) in enumerate((("initialize", opening), ("tools/call", call))):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answers.append(json.loads(process.stdout.readline()))
    rest, said = process.communicate(timeout=120)
    assert [answer["id"] for answer in answers] == [0, 1]
    assert answers[1]["result"]["structuredContent"]["text"] == "hello you"
    assert rest == ""
    assert process.returncode == 0
    for printed in ("printed while", "printed by a tool", "written to the descriptor"):
        assert printed in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_runs_in_order(trace: Trace, number: signal.Signals) -> None:
    async def main() -> None:
        async with asyncio.timeout(300), over_stdio(trace) as client:
            cut = asyncio.create_task(client.call_tool("waiting", {"name": "cut"}))
            await until(trace.has("cut started"))
            os.kill(trace.pids[0], number)
            with contextlib.suppress(MCPError):  # an answer, or the end of the connection
                assert (await cut).is_error
            await until(lambda: not alive(trace.pids[0]))
            assert trace.has("cut cancelled")()

    asyncio.run(main())


def test_a_signal_ends_what_listens(trace: Trace) -> None:
    with listening(trace) as (_, process):
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 130


def test_web_pages_and_foreign_hosts_are_refused(house: tuple[str, Trace]) -> None:
    url, _ = house
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}

    def status(**headers: str) -> int:
        response = httpx2.post(
            url, json=body, headers={**accept, **headers}, trust_env=False, timeout=120
        )
        return response.status_code

    assert status(origin="https://evil.example") == 403
    assert status(origin="http://localhost:3000") == 403
    assert status(host="evil.example") == 421
    port = url.split(":")[2].split("/")[0]
    assert status(host=f"localhost:{port}") not in (403, 421)
    assert status(origin="https://mine.example") not in (403, 421)


def test_a_port_that_is_taken(house: tuple[str, Trace]) -> None:
    url, trace = house
    second = subprocess.run(
        command(trace, "--http", "--port", url.split(":")[2].split("/")[0]),
        env={**os.environ, **environment(trace)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert second.returncode == 1
    assert "cannot listen" in second.stderr
