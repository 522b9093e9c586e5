"""The cost of an item, of a single call and of large results."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Final

import weft
from evals.engine.rows import Row
from weft.agents.tools import Toolbox, resolve
from weft.cluster.nodes import LocalCluster
from weft.cluster.process import BRIDGES
from weft.cluster.settings import Ray
from weft.cluster.tools import RayTools

HERE: Final = Path(__file__).parent
_MIB: Final = 1024 * 1024
CHAINS: Final = (20, 220)
"""Calls of a short and of a long chain: what they cost beside their calls cancels out."""
_CHAIN_ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    items: int
    singles: int
    results_mib: int = 64
    rounds: int = 3


FULL: Final = Sizes(100_000, 2_000)
QUICK: Final = Sizes(100_000, 500, rounds=1)


def ray_of(cluster: LocalCluster) -> Ray:
    """The cluster, with a content store in its folder."""
    content = str(Path(cluster.folder, "content"))
    return Ray(cluster.address, token_file=cluster.token_file, content=content)


def map_rows(cluster: LocalCluster, sizes: Sizes) -> Iterator[Row]:
    """A map of no-ops on the cluster and in this process; the difference is the dispatch."""
    case = f"map_{sizes.items}"
    flow = weft.load(HERE / "map.yaml")
    ray = ray_of(cluster)
    flow.run_sync(numbers=list(range(1_000)), on=ray)  # workers and code are there
    before = resident_bytes()
    far, near = [], []
    for _ in range(sizes.rounds):  # side by side: other programs slow down both
        far.append(_wall_s(flow, sizes.items, ray))
        near.append(_wall_s(flow, sizes.items, "local"))
    after = resident_bytes()
    total, engine = median(far), median(near)
    yield Row(case, "weft_ray", "wall_s", total, "s")
    yield Row(case, "weft_engine", "wall_s", engine, "s")
    yield Row(case, "weft_ray", "item_ms", total / sizes.items * 1e3, "ms")
    yield Row(case, "weft_engine", "item_ms", engine / sizes.items * 1e3, "ms")
    dispatch = median(a - b for a, b in zip(far, near, strict=True)) / sizes.items * 1e3
    yield Row(case, "weft_ray", "dispatch_ms_per_item", dispatch, "ms")
    growth = max(0, after - before) / _MIB
    yield Row(case, "weft_ray", "bridge_growth", growth, "MiB")


def _wall_s(flow: weft.Flow, items: int, on: object) -> float:
    numbers = list(range(items))
    began = time.perf_counter()
    result = flow.run_sync(numbers=numbers, on=on)
    wall = time.perf_counter() - began
    if result.outputs["each"] != numbers:
        raise AssertionError("the map has other results")
    return wall


def single_rows(cluster: LocalCluster, sizes: Sizes) -> Iterator[Row]:
    """One call after another, awaited alone."""

    async def measure() -> list[float]:
        box = Toolbox(resolve("./tools.py:noop", HERE))
        tools = RayTools(box, ray_of(cluster))
        tools.place(box.get("noop"))
        call = tools.bound("noop")
        try:
            for _ in range(50):
                await call({"n": 1})
            times = []
            for n in range(sizes.singles):
                began = time.perf_counter()
                await call({"n": n})
                times.append((time.perf_counter() - began) * 1e3)
            return times
        finally:
            await tools.aclose()

    times = asyncio.run(measure())
    yield Row("single_call", "weft_ray", "p50_ms", median(times), "ms")
    yield Row("single_call", "weft_ray", "p95_ms", quantiles(times, n=20)[-1], "ms")


def chain_rows(cluster: LocalCluster, sizes: Sizes) -> Iterator[Row]:
    """Calls of a program that wait for one another: the step of one message with one item.

    Processor time of weft's process for one more call of a chain, beyond the same chain here.
    """
    ray = ray_of(cluster)
    flows = [weft.loads(_chain(length), str(HERE / "chain.yaml")) for length in CHAINS]
    for flow in flows:
        flow.run_sync(n=1, on=ray)  # workers and code are there
    steps = []
    for _ in range(_CHAIN_ROUNDS * sizes.rounds):
        far = [_busy_s(flow, ray) for flow in flows]
        near = [_busy_s(flow, "local") for flow in flows]
        steps.append((far[1] - far[0]) - (near[1] - near[0]))
    step = median(steps) / (CHAINS[1] - CHAINS[0])
    yield Row("chained_call", "weft_ray", "step_us", step * 1e6, "us")


def _chain(length: int) -> str:
    calls = [
        f'  c{n}: {{tool: noop, with: {{n: "{{{{ {f"c{n - 1}" if n else "n"} }}}}"}}}}'
        for n in range(length)
    ]
    head = ["name: chain", "inputs: {n: integer}", 'tools: {noop: "./tools.py:noop"}']
    head += ["run: {durability: none}", "nodes:"]
    return "\n".join([*head, *calls, f'outputs: {{n: "{{{{ c{length - 1} }}}}"}}'])


def _busy_s(flow: weft.Flow, on: object) -> float:
    began = time.process_time()
    result = flow.run_sync(n=1, on=on)
    busy = time.process_time() - began
    if result.outputs["n"] != 1:
        raise AssertionError("the chain has another result")
    return busy


def result_rows(cluster: LocalCluster, sizes: Sizes) -> Iterator[Row]:
    """Large results: how much the process of the driver grows, and how long it takes."""

    async def measure() -> float:
        box = Toolbox(resolve("./tools.py:text", HERE))
        tools = RayTools(box, ray_of(cluster))
        tools.place(box.get("text"))
        try:
            await tools.call("text", {"length": 10})
            began = time.perf_counter()
            for _ in range(sizes.results_mib // 8):
                found = await tools.call("text", {"length": 8 * _MIB})
                if len(found) != 8 * _MIB:
                    raise AssertionError("a result was cut")
            return time.perf_counter() - began
        finally:
            await tools.aclose()

    before = peak_bytes()
    wall = asyncio.run(measure())
    case = f"results_{sizes.results_mib}_mib"
    yield Row(case, "weft_ray", "wall_s", wall, "s")
    grown = max(0, peak_bytes() - before) / _MIB
    yield Row(case, "weft_ray", "bridge_growth", grown, "MiB")


def task_rows(cluster: LocalCluster, sizes: Sizes) -> Iterator[Row]:
    """The same with plain tasks of Ray, in a process of its own."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "evals.cluster.ray_tasks",
            cluster.address,
            str(sizes.items),
            str(sizes.singles),
        ],
        env=_driver(cluster),
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(next(line for line in done.stdout.splitlines() if line[:1] == b"{"))
    case = f"map_{sizes.items}"
    yield Row(case, "ray_tasks", "item_ms", found["item_ms"], "ms")
    yield Row(case, "ray_tasks", "dispatch_ms_per_item", found["item_ms"], "ms")
    yield Row("single_call", "ray_tasks", "p50_ms", found["p50_ms"], "ms")


def _driver(cluster: LocalCluster) -> dict[str, str]:
    from weft.cluster.nodes import node_environment

    return node_environment("", cluster.token_file)


def resident_bytes() -> int:
    """The memory of all bridges, now."""
    return sum(_status(pid, "VmRSS") for pid in BRIDGES.running())


def peak_bytes() -> int:
    """The most memory that the bridges ever had."""
    return sum(_status(pid, "VmHWM") for pid in BRIDGES.running())


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
