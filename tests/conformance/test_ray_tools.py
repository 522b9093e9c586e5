"""A real Ray cluster of a head and three nodes: the suite, faults, secrets, and what is left.

Marked `vllm` because it has the machine to itself, as those tests do.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.cluster import far_tools
from tests.cluster.tasks import all_of
from tests.conformance.far_tool_runner import FarToolRunnerConformance
from tests.postgres_server import postgres_server
from tests.reasoning.code.sandbox_support import needs_protection
from tests.s3_server import s3_server
from weft.agents.process_tree import VARIABLE
from weft.agents.programs import PlacedSandbox, run_program
from weft.agents.tools import Tool, Toolbox, tool
from weft.cluster.nodes import LocalCluster, start_cluster
from weft.cluster.process import BRIDGES
from weft.cluster.settings import Pool, Ray
from weft.cluster.tools import RayTools
from weft.core.errors import EffectUnknown, PlacementError, WorkerLost
from weft.core.ids import NodeId
from weft.core.ports import ToolRunner
from weft.reasoning.code.sandbox.outcome import SandboxResult
from weft.reasoning.code.sandbox.sandbox import CodeSandbox

pytestmark = pytest.mark.vllm
CREDENTIAL = secrets.token_hex(16)
ARGUMENT = secrets.token_hex(16)


def processes_of(cluster: LocalCluster) -> list[int]:
    marks = {f"{VARIABLE}={node.mark}".encode() for node in cluster.nodes}
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if marks & set((place / "environ").read_bytes().split(b"\0")):
                found.append(int(place.name))
        except OSError:
            pass
    return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    pytest.importorskip("ray", reason="Ray is not installed")
    os.environ["WEFT_TEST_CREDENTIAL"] = CREDENTIAL
    try:
        made = start_cluster([(), ("gpu",), ()], ["WEFT_TEST_CREDENTIAL"])
    finally:
        del os.environ["WEFT_TEST_CREDENTIAL"]
    try:
        yield made
    finally:
        BRIDGES.close()
        made.stop()
        assert not processes_of(made)
        assert not Path(made.folder).exists()


def ray_of(cluster: LocalCluster, **more: Any) -> Ray:
    given = {"content": str(Path(cluster.folder, "content")), **more}
    return Ray(cluster.address, token_file=cluster.token_file, **given)


class TestRayTools(FarToolRunnerConformance):
    @pytest.fixture(autouse=True)
    def use(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def make(self, *functions: Callable[..., Any]) -> RayTools:
        box = Toolbox(*(tool(function) for function in functions))
        runner = RayTools(box, ray_of(self._cluster))
        assert all(runner.place(box.get(name)) == "default" for name in box.names)
        return runner

    async def aclose(self, runner: ToolRunner) -> None:
        assert isinstance(runner, RayTools)
        await runner.aclose()


def run(cluster: LocalCluster, case: Any, *functions: Tool[..., Any], **more: Any) -> Any:
    async def main() -> Any:
        runner = RayTools(Toolbox(*functions), ray_of(cluster, **more))
        for function in functions:
            runner.place(function)
        try:
            async with asyncio.timeout(120):
                return await case(runner)
        finally:
            await runner.aclose()

    return asyncio.run(main())


async def begun(file: Path) -> None:
    while not file.exists():
        await asyncio.sleep(0.01)


def test_a_label_chooses_the_node_and_all_nodes_work(cluster: LocalCluster) -> None:
    async def places(tools: RayTools) -> set[int]:
        return set(await all_of(*(tools.call("place", {}) for _ in range(60))))

    everywhere = run(cluster, places, far_tools.place)
    labelled = run(cluster, places, far_tools.place, pools={"default": Pool(("gpu",))})
    assert len(everywhere) == 3
    assert len(labelled) == 1
    node = next(each for each in cluster.nodes if "gpu" in each.labels)
    assert node.mark.encode() in Path(f"/proc/{labelled.pop()}/environ").read_bytes()


def test_a_worker_that_is_killed_loses_no_call_that_may_be_repeated(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    async def case(tools: RayTools) -> None:
        waiting = [
            asyncio.ensure_future(tools.call("wait", {"file": str(tmp_path / str(number))}))
            for number in range(3)
        ]
        await all_of(*(begun(tmp_path / str(number)) for number in range(3)))
        calls = [asyncio.ensure_future(tools.call("square", {"n": n})) for n in range(2_000)]
        await asyncio.sleep(0)
        os.kill(await tools.call("place", {}), signal.SIGKILL)
        assert await all_of(*calls) == [n * n for n in range(2_000)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert all(isinstance(task.exception(), WorkerLost) for task in done)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)

    run(cluster, case, far_tools.square, far_tools.place, far_tools.wait)


def test_a_frozen_node_makes_the_end_of_its_call_unknown(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    file = tmp_path / "slow"
    charge = tool(effect="once")(far_tools.linger)

    async def case(tools: RayTools) -> None:
        call = asyncio.ensure_future(tools.call("linger", {"file": str(file)}))
        await begun(file)
        while not (text := file.read_text("ascii")):
            await asyncio.sleep(0.01)
        os.kill(int(text), signal.SIGSTOP)
        try:
            with pytest.raises(EffectUnknown, match=r"on 127\.0\.0\.\d was lost: it gave no sign"):
                await call
        finally:
            os.kill(int(text), signal.SIGCONT)

    run(cluster, case, charge, silence_s=2.0)


def test_a_bridge_that_is_killed_is_replaced(cluster: LocalCluster) -> None:
    async def case(tools: RayTools) -> None:
        await tools.call("square", {"n": 1})
        bridge = next(iter(BRIDGES.running()))
        calls = [asyncio.ensure_future(tools.call("square", {"n": n})) for n in range(2_000)]
        await asyncio.sleep(0)
        os.kill(bridge, signal.SIGKILL)
        assert await all_of(*calls) == [n * n for n in range(2_000)]
        assert bridge not in BRIDGES.running()

    run(cluster, case, far_tools.square)


def test_credentials_travel_by_name_and_are_in_no_log(cluster: LocalCluster) -> None:
    async def case(tools: RayTools) -> bool:
        assert await tools.call("length", {"text": ARGUMENT}) == len(ARGUMENT)
        return bool(await tools.call("secret", {}))

    assert run(cluster, case, far_tools.secret, far_tools.length)
    token = Path(cluster.token_file).read_bytes()
    assert len(token) == 64
    files = [
        path
        for path in Path(cluster.folder).rglob("*")
        if path.is_file() and path != Path(cluster.token_file)
    ]
    assert len(files) > 20
    for path in files:
        content = path.read_bytes()
        for planted in (CREDENTIAL.encode(), ARGUMENT.encode(), token):
            assert planted not in content, path


def test_workers_open_a_store_on_a_server_with_their_own_credentials(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def case(tools: RayTools) -> list[int]:
        texts = ["x" * 70_000, "y"]
        return [await tools.call("length", {"text": text}) for text in texts]

    def count(address: str) -> Any:
        return run(cluster, case, far_tools.length, content=address)

    with postgres_server() as server:
        assert count(server.database()) == [70_000, 1]
    with s3_server() as s3:
        s3.use(monkeypatch)
        with pytest.raises(PlacementError, match="a worker has no AWS_ACCESS_KEY_ID and no AWS_S"):
            count(f"s3://{s3.bucket()}/weft")


@needs_protection
def test_a_program_of_a_model_runs_in_the_sandbox_of_a_node(cluster: LocalCluster) -> None:
    async def case(tools: RayTools) -> list[SandboxResult]:
        sandbox = PlacedSandbox(CodeSandbox(), tools.bound("run_program"))
        programs = (
            "print(input())",
            "import os; print(os.environ)",
            "import socket; socket.socket()",
        )
        return [await sandbox.run(program, "given") for program in programs]

    given, environment, network = run(cluster, case, run_program)
    assert (given.status, given.stdout) == ("finished", "given\n")
    assert CREDENTIAL not in environment.stdout
    assert not network.ok


TOOLS = """
import os
from pathlib import Path

import weft


@weft.tool
def where(n: int) -> int:
    return os.getpid()


@weft.tool(effect="once")
def dies(file: str) -> int:
    Path(file).touch()
    os.kill(os.getpid(), 9)
    return 1
"""
FLOW = """
name: far
inputs: {numbers: {type: array, items: {type: integer}}, file: string}
tools: {where: "./tools.py:where", dies: {use: "./tools.py:dies", on: gpu}}
run: {on: ray, pools: {default: {}, gpu: {labels: [gpu]}}}
nodes:
  each: {map: "{{ numbers }}", as: n, do: {tool: where, with: {n: "{{ n }}"}}}
  dead: {tool: dies, with: {file: "{{ file }}"}, retry: 3}
outputs: {each: "{{ each }}", dead: "{{ dead }}"}
"""


def test_a_recorded_flow_tells_what_is_unknown(cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS, "utf-8")
    (tmp_path / "far.yaml").write_text(FLOW, "utf-8")
    flow = weft.load(tmp_path / "far.yaml")
    inputs = {"numbers": list(range(60)), "file": str(tmp_path / "acted")}
    journal = tmp_path / "journal.sqlite"
    result = flow.run_sync(inputs, on=ray_of(cluster), run="far", journal=journal)
    assert result.status == "failed"
    pids = set(result.outputs["each"])
    assert len(pids) == 3
    assert os.getpid() not in pids
    assert isinstance(result.errors[NodeId("dead")], EffectUnknown)
    assert [unsettled.tool for unsettled in result.unsettled] == ["dies"]
    assert (tmp_path / "acted").exists()


PART = """
name: part
inputs: {numbers: {type: array, items: {type: integer}}}
tools: {where: "./tools.py:where"}
nodes:
  each: {map: "{{ numbers }}", as: n, do: {tool: where, with: {n: "{{ n }}"}}}
outputs: {each: "{{ each }}"}
"""
PLACED = """
name: placed
tools: {where: "./tools.py:where"}
run: {on: ray, pools: {default: {}, gpu: {labels: [gpu]}}}
nodes:
  each: {map: [1, 2, 3], on: gpu, do: {tool: where, with: {n: "{{ item }}"}}}
  part: {workflow: ./part.yaml, with: {numbers: [4, 5]}, on: gpu}
  here: {map: [6], on: local, do: {tool: where, with: {n: "{{ item }}"}}}
outputs: {there: "{{ each + part.each }}", here: "{{ here }}"}
"""


def test_a_map_and_a_workflow_run_on_the_pool_that_they_name(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    for name, text in (("tools.py", TOOLS), ("part.yaml", PART), ("placed.yaml", PLACED)):
        (tmp_path / name).write_text(text, "utf-8")
    flow = weft.load(tmp_path / "placed.yaml")
    result = flow.run_sync(on=ray_of(cluster), durability="none")
    node = next(each for each in cluster.nodes if "gpu" in each.labels)
    assert result.outputs["here"] == [os.getpid()]
    for pid in result.outputs["there"]:
        assert node.mark.encode() in Path(f"/proc/{pid}/environ").read_bytes()


KILLED = """
import asyncio, os, signal, sys
import tests.conformance.test_ray_tools as here
from weft.agents.tools import Toolbox
from weft.cluster.process import BRIDGES
from weft.cluster.settings import Ray
from weft.cluster.tools import RayTools

async def main():
    address, token_file, content = sys.argv[1:]
    ray = Ray(address, token_file=token_file, content=content)
    tools = RayTools(Toolbox(here.far_tools.square), ray)
    tools.place(here.far_tools.square)
    await tools.call("square", {"n": 1})
    print(*BRIDGES.running(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_a_killed_weft_leaves_no_bridge(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    content = str(Path(cluster.folder, "content"))
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, cluster.address, cluster.token_file, content],
        stdout=subprocess.PIPE,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    bridge = Path("/proc", ended.stdout.decode().strip())
    deadline = time.monotonic() + 30
    while bridge.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not bridge.exists()
    assert not list(tmp_path.glob("weft-bridge-*"))
