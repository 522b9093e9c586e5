"""Servers under `tools:`: what can be written, what is refused, and what a run does with them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from tests.integration.mcp_watch import Trace, alive, until
from weft.cli.main import app
from weft.core.errors import BuildError, SourceError
from weft.core.events import NodeLogged
from weft.core.values import ToolCall
from weft.testing import FakeModel, FakeTools, Reply
from weft.workflow.apps.mcp_server import WorkflowMcpServer

PEER = Path(__file__).parents[1] / "integration" / "mcp_peer.py"
FLOW = """
name: f
inputs: {{n: {{type: integer, default: 1}}}}
models: {{small: "local:m"}}
tools:
  peer: {{mcp: {{command: [{python}, {peer}, {trace}, stdio]}}{only}}}
run: {{limits: {{peer: 2}}}}
nodes:
{nodes}
outputs: {{x: "{{{{ a }}}}"}}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return Trace(tmp_path)


@pytest.fixture
def flow(trace: Trace) -> Callable[..., weft.Flow]:
    def made(*nodes: str, only: str = "") -> weft.Flow:
        return weft.loads(text_of(trace, *nodes, only=only), str(trace.path.parent / "f.yaml"))

    return made


def text_of(trace: Trace, *nodes: str, only: str = "") -> str:
    lines = "\n".join(f"  {node}" for node in nodes)
    only = f", only: [{only}]" if only else ""
    return FLOW.format(python=sys.executable, peer=PEER, trace=trace.path, nodes=lines, only=only)


Made = Callable[..., weft.Flow]


def test_tools_of_a_server_are_called(flow: Made, trace: Trace) -> None:
    lines: list[str] = []
    made = flow(
        'b: {tool: peer.add, with: {a: 2, b: "{{ n }}"}}',
        "c: {tool: peer.shout-it.out, with: {text: hi}}",
        "d: {tool: peer.steps, with: {count: 1}}",
        'a: {value: ["{{ b }}", "{{ c }}", "{{ d }}"]}',
    )
    made.check()
    assert not trace.pids  # checking starts nothing

    def listen(event: Any) -> None:
        if isinstance(event, NodeLogged):
            lines.append(f"{event.node}: {event.text}")

    result = made.run_sync(n=3, listeners=[listen])
    assert result.ok, result.reasons
    assert result["x"] == [5, "HI", "done"]
    assert lines == ["d: 1 of 1: step [31m1"]
    assert len(trace.pids) == 1
    assert not alive(trace.pids[0])


def test_a_server_that_nobody_needs_is_not_started(flow: Made, trace: Trace) -> None:
    made = flow('a: {tool: peer.add, with: {a: 1}, when: "{{ n > 1 }}"}')
    made.run_sync(n=1)
    assert not trace.pids


def test_a_cancelled_run_leaves_no_process(flow: Made, trace: Trace) -> None:
    made = flow("a: {tool: peer.wait, with: {name: it}}")

    async def main() -> None:
        run = made.start()
        waiting = asyncio.create_task(run.wait())
        await until(trace.has("it started"))
        run.cancel()
        assert (await waiting).status == "cancelled"

    asyncio.run(main())
    assert trace.has("it cancelled")()
    assert not alive(trace.pids[0])


def test_a_retry_meets_the_server_again(flow: Made, trace: Trace) -> None:
    made = flow("a: {tool: peer.die, retry: {attempts: 2, delay: 1ms}}")
    result = made.run_sync()
    assert result.status == "failed"
    assert len(trace.pids) == 2
    assert "ended with status 3 during the call" in str(result.reasons)


def test_a_model_is_offered_the_tools_of_a_server(flow: Made, trace: Trace) -> None:
    call = ToolCall("1", "peer_add", '{"a": 1}')
    model = FakeModel(lambda _: Reply(tool_calls=(call,)))
    made = flow("a: {model: small, prompt: x, tools: [peer]}")
    result = made.run_sync(models={"small": model})
    assert result.ok, result.reasons
    assert result["x"]["tool_calls"] == [{"name": "peer_add", "arguments": {"a": 1}}]
    offered = [spec.name for spec in model.requests[0].tools]
    assert offered[:2] == ["peer_add", "peer_shout_it_out"]
    assert not alive(trace.pids[0])


def test_given_tools_take_the_place_of_a_server(flow: Made, trace: Trace) -> None:
    made = flow("a: {tool: peer.add, with: {a: 20}}")
    result = made.run_sync(tools=FakeTools(peer_add=lambda a: a + 1))
    assert result["x"] == 21
    assert not trace.pids


def test_the_file_and_python_say_the_same(flow: Made) -> None:
    made = flow("a: {tool: peer.add, with: {a: 1}}", only="add")
    assert weft.loads(made.to_yaml()).document == made.document
    written = weft.Flow("g", tools={"peer": {"mcp": {"url": "http://127.0.0.1:1/mcp"}}})
    written.output(x=written.tool("peer.add", a=1, name="sum"))
    assert "mcp:" in written.to_yaml()
    assert weft.loads(written.to_yaml()).document == written.document


@pytest.mark.parametrize(
    ("nodes", "only", "line", "why", "hint"),
    [
        (["a: {tool: peer}"], "", 9, "`peer` is a server, not a tool", "peer.some_tool"),
        (["a: {tool: peer}"], "add", 9, "`peer` is a server", "peer.add"),
        (["a: {tool: peer.ad}"], "add", 9, "`ad` is not among the tools", "did you mean `add`?"),
        (["a: {tool: pear.add}"], "", 9, "no tool called `pear.add`", ""),
        (["a: {model: small, prompt: x, tools: [pear]}"], "", 9, "no tool called", "`peer`"),
    ],
)
def test_names_are_checked_without_the_server(
    flow: Made, nodes: list[str], only: str, line: int, why: str, hint: str
) -> None:
    with pytest.raises(SourceError, match=why) as raised:
        flow(*nodes, only=only)
    assert raised.value.line == line
    assert hint in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("tool", "why", "hint"),
    [
        ("{mcp: {}}", "a command or a url", "command: [program, argument]"),
        ("{mcp: {command: [a], url: 'http://localhost'}}", "a command or a url", ""),
        ("{mcp: {command: a}}", "`command` must be a list", ""),
        ("{mcp: {command: []}}", "`command` is empty", ""),
        ("{mcp: {comand: [a]}}", "unknown key `comand`", "did you mean `command`?"),
        ("{mcp: {command: [a], env: {TOKEN: x}}}", "unknown key `env`", "env_from"),
        ("{mcp: {url: 'http://localhost', headers: {}}}", "unknown key `headers`", "headers_from"),
        ("{mcp: {command: [a], env_from: [A-B]}}", "not a name", ""),
        ("{mcp: {url: 'http://example.org', api_key_env: K}}", "unencrypted", "https"),
        ("{mcp: {command: [a], timeout: soon}}", "a duration", "30s"),
        ("{use: './t.py:t', mcp: {command: [a]}}", "both `use` and `mcp`", "write `use:"),
        ("{only: [a]}", "no `use`, `mcp`, `openapi` or `memory`", "write `use:"),
        ("{use: './t.py:t', only: [a]}", "`only` does not go with a single tool", "leave it out"),
        ("{mcp: {command: [a]}, isolate: true}", "`isolate` does not go with a server", "leave"),
    ],
)
def test_declarations_are_checked_with_their_place(tool: str, why: str, hint: str) -> None:
    text = (
        f"name: f\ntools:\n  s: {tool}\nnodes: {{a: {{value: 1}}}}\noutputs: {{x: '{{{{ a }}}}'}}\n"
    )
    with pytest.raises(SourceError, match=why) as raised:
        weft.loads(text).check()
    assert raised.value.line == 3
    assert hint in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("a: {tool: peer.add, with: {a: 1, c: 2}}", "has no `c`"),
        ("a: {tool: peer.add}", "needs `a`"),
        ("a: {tool: peer.add, with: {a: yes please}}", "cannot take this"),
        ("a: {tool: peer.ad}", "`peer` has no tool `ad`"),
        ("a: {model: small, prompt: x, tools: [peer.ad]}", "`peer` has no tool `ad`"),
    ],
)
def test_asking_the_server_finds_more(flow: Made, trace: Trace, node: str, why: str) -> None:
    made = flow(node)
    made.check()
    with pytest.raises(SourceError, match=why) as raised:
        asyncio.run(made.check_connected())
    assert raised.value.line == 9
    assert not any(alive(pid) for pid in trace.pids)


def test_checking_tells_which_tools_cannot_be_used(trace: Trace) -> None:
    program = f"{sys.executable}, {PEER.with_name('mcp_hostile.py')}, strange, {trace.path}"
    (file := trace.path.parent / "f.yaml").write_text(
        f"name: f\ntools:\n  odd: {{mcp: {{command: [{program}]}}}}\n"
        "nodes: {a: {tool: odd.fine, with: {a: 1}}}\noutputs: {x: '{{ a }}'}\n"
    )
    checked = CliRunner().invoke(app, ["check", "--connect", str(file)])
    assert checked.exit_code == 0
    assert "f.yaml: ok, 1 node\n  odd: left out, for they cannot be used: " in checked.stdout
    assert "\x1b" not in checked.stdout


def test_a_tool_that_is_wanted_and_not_there(flow: Made) -> None:
    made = flow("a: {tool: peer.ad}", only="ad")
    with pytest.raises(SourceError, match="peer has no tool 'ad'") as raised:
        asyncio.run(made.check_connected())
    assert "did you mean 'add'?" in (raised.value.hint or "")
    result = made.run_sync()
    assert result.status == "failed"
    assert "peer has no tool 'ad'" in str(result.reasons)


def test_a_server_that_cannot_be_asked_is_named(tmp_path: Path) -> None:
    text = (
        "name: f\ntools:\n  s: {mcp: {command: [weft-no-such-program]}}\n"
        "nodes: {a: {tool: s.t}}\noutputs: {x: '{{ a }}'}\n"
    )
    with pytest.raises(SourceError, match="s cannot be started") as raised:
        asyncio.run(weft.loads(text).check_connected())
    assert raised.value.line == 3


def test_a_server_of_workflows_needs_one() -> None:
    with pytest.raises(BuildError):
        WorkflowMcpServer([])
