"""Programs of models in the sandbox of a worker."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.cluster.fake_cluster import POOLS, FakeCluster
from tests.reasoning.code.programmer import Programmer
from tests.reasoning.code.sandbox_support import needs_protection
from weft.agents.programs import PlacedSandbox, run_program
from weft.agents.tools import Toolbox
from weft.cluster.tools import RayTools
from weft.core.errors import SandboxError
from weft.reasoning.code.sandbox.outcome import SandboxResult
from weft.reasoning.code.sandbox.request import SandboxLimits
from weft.reasoning.code.sandbox.sandbox import CodeSandbox

PROGRAMS: dict[str, tuple[str, str, dict[str, str | bytes]]] = {
    "output": ("print(int(input()) + 1)", "41", {}),
    "an error": ("import sys; print('a'); sys.exit('no')", "", {}),
    "files": ("print(open('a').read(), open('b', 'rb').read())", "", {"a": "é", "b": b"\xff\x00"}),
    "a lone surrogate": ("print(ascii(input()))", "\ud800", {}),
    "too slow": ("while True: pass", "", {}),
    "a flood": ("print('x' * 100_000)", "", {}),
    "no network": ("import socket; socket.socket()", "", {}),
    "not in the files": ("print(open('/etc/passwd').read())", "", {}),
}
LIMITS = SandboxLimits(wall_s=20, cpu_s=1, output_bytes=10_000)


def ran(cluster: FakeCluster, sandbox: CodeSandbox, *program: Any) -> SandboxResult:
    async def main() -> SandboxResult:
        tools = RayTools(Toolbox(run_program), cluster.ray)
        tools.place(run_program, "gpu")
        try:
            return await PlacedSandbox(sandbox, tools.bound("run_program")).run(*program)
        finally:
            await tools.aclose()

    return asyncio.run(main())


@needs_protection
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_there_as_it_ends_here(cluster: FakeCluster, name: str) -> None:
    def told(result: SandboxResult) -> SandboxResult:
        if result.status in ("timeout", "output"):  # how it was ended is a race
            return SandboxResult(result.status, "", "", "")
        return replace(result, seconds=0.0, cpu_s=0.0, peak_bytes=0)

    sandbox = CodeSandbox(LIMITS)
    here = asyncio.run(sandbox.run(*PROGRAMS[name]))
    assert told(ran(cluster, sandbox, *PROGRAMS[name])) == told(here)


def test_what_cannot_be_run_there_is_an_error_of_the_sandbox(cluster: FakeCluster) -> None:
    small = CodeSandbox(SandboxLimits(input_bytes=10))
    with pytest.raises(SandboxError, match="a program is given 20 bytes"):
        ran(cluster, small, "x" * 20)
    cluster.workers.fails = 99
    with pytest.raises(SandboxError, match="the program was not run: no worker started"):
        ran(cluster, CodeSandbox(), "")


DRAFTS = [
    "```python\ndef add(a, b):\n    return a - b\n```",
    "```python\ndef add(a, b):\n    return a + b\n```",
]
TESTS = '{"function": "add", "tests": [{"input": [1, 2], "expected": 3}]}'


@needs_protection
@pytest.mark.parametrize(
    ("around", "pools", "place"),
    [
        ("gpu", POOLS, "gpu"),
        (None, POOLS, None),
        (None, {**POOLS, "sandbox": {"labels": ["big"]}}, "big"),
        ("local", {**POOLS, "sandbox": {"labels": ["big"]}}, None),
    ],
)
def test_a_strategy_runs_its_programs_where_the_nodes_around_say(
    cluster: FakeCluster, around: str | None, pools: dict[str, Any], place: str | None
) -> None:
    thinking = {
        "strategy": "sstar",
        "width": 2,
        "documents": {"tests.json": TESTS},
        "settings": {"debug": 0, "select": "first"},
    }
    node = {"model": "m", "prompt": "Add two numbers.", "think": thinking}
    models = {"m": {"use": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}}
    each = {"map": [1], "do": node, **({"on": around} if around else {})}
    flow = cluster.flow({"each": each}, models=models)
    programmer = Programmer(DRAFTS)
    given = {"m": programmer.model}
    ended = flow.run_sync(on=replace(cluster.ray, pools=pools), models=given)
    assert ended.outputs == {"each": ["def add(a, b):\n    return a + b\n"]}
    nodes = {worker.node for worker in cluster.workers.started if worker.calls}
    assert nodes == ({place} if place else set())
