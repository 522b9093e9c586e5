"""Replicas on a real Ray cluster of a head and two nodes: scripted servers, then vLLM.

Marked `vllm` because it has the machine to itself, as those tests do.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

import weft
from tests.cluster.scripted_replica import COMMAND
from weft.agents.process_tree import kill_group
from weft.cluster import replicas as replicas_module
from weft.cluster.link import open_bridge
from weft.cluster.nodes import LocalCluster, start_cluster
from weft.cluster.process import BRIDGES
from weft.serve import (
    FollowingFleet,
    Message,
    ModelRequest,
    RayReplicas,
    Sampling,
    ServeSpec,
    complete,
)
from weft.serving.vllm.serve import servings, stop
from weft.serving.vllm.supervise.processes import MARK

pytestmark = pytest.mark.vllm
KEY = f"sk-{secrets.token_hex(16)}"
PROMPT = f"planted-{secrets.token_hex(16)}"
SCRIPTED = ServeSpec("scripted", device="cpu", api_key_env="WEFT_TEST_SERVER_KEY")
PATIENCE_S = 300.0
T = TypeVar("T")


@pytest.fixture(scope="module")
def patched() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, patched: pytest.MonkeyPatch
) -> Iterator[LocalCluster]:
    pytest.importorskip("ray", reason="Ray is not installed")
    patched.setenv("WEFT_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    patched.setenv("WEFT_TEST_SERVER_KEY", KEY)
    made = start_cluster([(), ()], ["WEFT_STATE_DIR", "WEFT_TEST_SERVER_KEY"])
    try:
        yield made
    finally:
        BRIDGES.close()
        made.stop()


def servers() -> list[psutil.Process]:
    """Processes of replicas that this module's cluster has started."""
    state = os.environ["WEFT_STATE_DIR"]
    found = []
    for process in psutil.process_iter():
        try:
            variables = process.environ()
        except psutil.Error:
            continue
        if MARK in variables and variables.get("WEFT_STATE_DIR") == state:
            found.append(process)
    return found


def until_found(look: Callable[[], list[T]]) -> list[T]:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def none_left() -> None:
    assert until_found(lambda: [] if servers() else [True])


def ray_of(cluster: LocalCluster) -> weft.Ray:
    return weft.Ray(cluster.address, token_file=cluster.token_file)


@asynccontextmanager
async def scripted(cluster: LocalCluster) -> AsyncIterator[tuple[RayReplicas, FollowingFleet]]:
    ray = ray_of(cluster)
    replicas = RayReplicas(SCRIPTED, ray, connect=partial(open_bridge, ray, COMMAND))
    fleet = FollowingFleet("scripted", replicas, replicas.client)
    try:
        yield replicas, fleet
    finally:
        await fleet.aclose()
        await replicas.aclose()


async def until(replicas: RayReplicas, holds: Callable[[set[str]], bool]) -> set[str]:
    async for urls in replicas.watch():
        if holds(set(urls)):
            return set(urls)
    raise AssertionError


async def ask(fleet: FollowingFleet, most: int = 8) -> str:
    request = ModelRequest(
        (Message("user", PROMPT),), sampling=Sampling(max_tokens=most, temperature=0)
    )
    return (await complete(fleet, request)).text


def run(work: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await work

    asyncio.run(main())
    none_left()


FLOW = """
name: asks
models: {m: {use: vllm, model: MODEL, api_key_env: WEFT_TEST_SERVER_KEY, options: {OPTIONS}}}
nodes: {said: {model: m, prompt: "PROMPT", max_tokens: 8}}
outputs: {said: "{{ said }}"}
"""


def said_by(folder: Path, model: str, **options: object) -> str:
    """What a workflow says whose only node asks `model`."""
    text = FLOW.replace("MODEL", model).replace("PROMPT", PROMPT)
    text = text.replace("{OPTIONS}", json.dumps(options))
    (folder / "flow.yaml").write_text(text, "utf-8")
    result = weft.load(folder / "flow.yaml").run_sync()
    assert not result.errors
    assert result.status in ("succeeded", "partial")  # the answer may be cut off
    assert KEY.encode() not in Path(os.environ["WEFT_JOURNAL"]).read_bytes()
    return str(result.outputs["said"])


@pytest.fixture
def token(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user of a cluster sets it."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", cluster.token_file)


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.usefixtures("token")
def test_a_workflow_has_vllm_on_a_node(cluster: LocalCluster, tmp_path: Path) -> None:
    pytest.importorskip("vllm", reason="vLLM is not installed")
    limits = {"kv_cache": "256MiB", "max_context_tokens": 512}
    on = f"ray:{cluster.address}"
    assert said_by(tmp_path, "smollm2-135m-instruct", on=on, **limits)
    none_left()


@pytest.mark.usefixtures("token")
def test_a_workflow_has_its_replicas_placed(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas_module, "REPLICAS", COMMAND)
    on = f"ray:{cluster.address}"
    said = said_by(tmp_path, "scripted", on=on, device="cpu", replicas=1, max_replicas=2)
    assert said.startswith("from ")
    none_left()


@pytest.mark.usefixtures("token")
def test_the_command_serves_and_programs_find_it(cluster: LocalCluster, tmp_path: Path) -> None:
    out = Path(os.environ["WEFT_STATE_DIR"], "serve.out")
    words = ["serve", "scripted", "--device", "cpu", "--api-key-env", "WEFT_TEST_SERVER_KEY"]
    words += ["--on", f"ray:{cluster.address}", "--replicas", "2"]
    with out.open("wb") as output:
        command = [sys.executable, "-m", "tests.cluster.scripted_program", "weft", *words]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        (entry,) = until_found(lambda: [e for e in servings() if e.status == "ready"])
        assert len(entry.urls) == len(set(entry.urls)) == 2
        assert said_by(tmp_path, "scripted").startswith("from ")
        stop(entry)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    said = out.read_text("utf-8")
    assert all(url in said for url in entry.urls)
    none_left()


def test_a_node_that_dies_takes_its_replica_to_the_other_one(cluster: LocalCluster) -> None:
    async def case() -> None:
        async with scripted(cluster) as (replicas, fleet):
            await replicas.scale(2)
            both = await until(replicas, lambda urls: len(urls) == 2)
            nodes = {node.address: node for node in cluster.nodes}
            assert {url.split("/")[2].split(":")[0] for url in both} == {*nodes} - {"127.0.0.2"}
            await replicas.scale(1)
            (url,) = await until(replicas, lambda urls: len(urls) == 1)
            while len(servers()) > 2:  # the guard and the server of the one that stays
                await asyncio.sleep(0.01)
            before = await ask(fleet)
            victim = nodes[url.split("/")[2].split(":")[0]]
            kill_group(victim.pid, victim.mark)
            moved = await until(replicas, lambda urls: len(urls) == 1 and url not in urls)
            assert await ask(fleet) != before
            (entry,) = [one for one in replicas.states if one.status == "ready"]
            assert (entry.url, entry.restarts) == (*moved, 1)

    run(case())


KILLED = """
import asyncio, os, signal, sys
import tests.cluster.test_ray_replicas as here
from weft.cluster.nodes import LocalCluster

async def main():
    address, token_file = sys.argv[1:]
    async with here.scripted(LocalCluster(address, token_file, "", ())) as (replicas, fleet):
        await replicas.scale(1)
        await here.ask(fleet)
        assert len(here.servers()) == 2
        print("asked", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_a_killed_weft_leaves_no_replica(cluster: LocalCluster) -> None:
    command = [sys.executable, "-c", KILLED, cluster.address, cluster.token_file]
    ended = subprocess.run(command, stdout=subprocess.PIPE, timeout=PATIENCE_S, check=False)
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"asked\n")
    none_left()


def test_no_key_no_token_and_no_prompt_is_in_a_log(cluster: LocalCluster) -> None:
    """The last one: after all that was done on this cluster."""
    state = Path(os.environ["WEFT_STATE_DIR"])
    token_file = Path(cluster.token_file)
    token = token_file.read_bytes()
    files = [
        path
        for folder in (Path(cluster.folder), state)
        for path in folder.rglob("*")
        if path.is_file() and path != token_file
    ]
    logs = [path for path in files if path.is_relative_to(state) and path.name == "0.log"]
    assert len(logs) >= 3
    assert len(files) > 20
    for path in files:
        content = path.read_bytes()
        for planted in (KEY.encode(), PROMPT.encode(), token):
            assert planted not in content, path
