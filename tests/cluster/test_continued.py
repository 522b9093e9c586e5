"""Runs that go on elsewhere: `weft resume --on`, and workers with a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.cli.command_line import go_into, typed
from tests.cluster.fake_cluster import FakeCluster, call
from weft.errors import BuildError

NODES: dict[str, Any] = {
    "first": {"map": [1, 2], "on": "gpu", "do": call("{{ item }}")},
    "asked": {"ask": "go on?", "after": ["first"]},
    "then": {"map": [3], "on": "gpu", "do": call("{{ item }}"), "after": ["asked"]},
}
POOLS = {name: {"labels": [name]} for name in ("default", "gpu", "big")}
FAR = ("--on", "ray:127.0.0.99:1")


@pytest.fixture
def flow(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> weft.Flow:
    go_into(cluster.folder, monkeypatch)
    return cluster.flow(NODES, run={"pools": POOLS, "content": str(cluster.folder / "content")})


@pytest.mark.parametrize(
    ("begun", "ended", "placed"),
    [
        (FAR, ("--on", "local"), [{"gpu": [1, 2]}, {}]),
        (("--on", "local"), FAR, [{}, {"gpu": [3]}]),
        (FAR, FAR, [{"gpu": [1, 2]}, {"gpu": [3]}]),
    ],
)
def test_a_run_goes_on_where_resume_says(
    cluster: FakeCluster,
    flow: weft.Flow,
    begun: tuple[str, ...],
    ended: tuple[str, ...],
    placed: list[dict[str, list[int]]],
) -> None:
    first = typed("run", "flow.yaml", "--run-id", "r", *begun)
    assert first.exit_code == 4, first.output
    there = cluster.placed()
    last = typed("resume", "r", "--answer", "asked=yes", *ended)
    assert last.exit_code == 0, last.output
    assert "not done again" in last.output
    assert [there, cluster.placed()] == placed


def test_resume_without_the_cluster_says_what_to_write(
    cluster: FakeCluster, flow: weft.Flow
) -> None:
    typed("run", "flow.yaml", "--run-id", "r", *FAR)
    refused = typed("resume", "r", "--answer", "asked=yes")
    assert refused.exit_code == 2
    assert "without a cluster" in refused.output
    assert "--on ray" in refused.output
    assert typed("resume", "r", "--answer", "asked=yes", *FAR).exit_code == 0
    assert typed("resume", "r", "--on", "rays").exit_code == 2


def test_a_part_runs_again_where_replay_says(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_into(cluster.folder, monkeypatch)
    content = str(cluster.folder / "content")
    nodes = {"each": {"map": [1, 2], "on": "gpu", "do": call("{{ item }}")}}
    cluster.flow(nodes, run={"pools": POOLS, "content": content})
    assert typed("run", "flow.yaml", "--run-id", "r", "--on", "local").exit_code == 0
    assert typed("replay", "r").exit_code == 0
    assert typed("replay", "r", *FAR).exit_code == 2
    assert "without a cluster" in typed("replay", "r", "--from", "each").output
    assert cluster.placed() == {}
    again = typed("replay", "r", "--from", "each", *FAR)
    assert again.exit_code == 0, again.output
    assert cluster.placed() == {"gpu": [1, 2]}


@pytest.mark.parametrize("there", [True, False])
def test_a_worker_runs_the_tools_where_it_says(
    cluster: FakeCluster, flow: weft.Flow, there: bool
) -> None:
    nodes = {"each": {"map": [1, 2], "on": "gpu", "do": call("{{ item }}")}}
    flow = cluster.flow(nodes, run={"pools": POOLS})
    journal = weft.open_journal(cluster.folder / "queue.sqlite")
    worker = weft.Worker([flow], journal, on=cluster.ray if there else "local")

    async def main() -> object:
        submitted = flow.submit(journal=journal)
        serving = asyncio.ensure_future(worker.serve())
        try:
            return (await submitted.result()).outputs
        finally:
            worker.drain()
            await serving

    try:
        assert asyncio.run(main()) == {"each": [1, 2]}
    finally:
        journal.close()
    assert cluster.placed() == ({"gpu": [1, 2]} if there else {})


def test_a_worker_refuses_a_pool_that_its_cluster_does_not_have(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    nodes = {"each": {"map": [1], "on": "gpux", "do": call(1)}}
    flow = cluster.flow(nodes, run={"pools": POOLS})
    journal = weft.open_journal(tmp_path / "queue.sqlite")
    try:
        with pytest.raises(BuildError, match="there is no pool 'gpux'"):
            weft.Worker([flow], journal, on=cluster.ray)
    finally:
        journal.close()
    refused = typed("worker", str(cluster.folder / "flow.yaml"), *FAR)
    assert refused.exit_code == 2
    assert "there is no pool 'gpux'" in refused.output
