"""The driver of a cluster that has ended, and of one that is there again without it."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from weft.cluster.ray_workers import RayWorkers


def node(name: str, *, alive: bool = True) -> dict[str, Any]:
    address = f"127.0.0.{len(name)}"
    return {
        "NodeID": name,
        "NodeManagerAddress": address,
        "Alive": alive,
        "Resources": {"CPU": 1.0},
    }


class FakeRay:
    """As much of Ray as a driver asks before it starts a worker."""

    def __init__(self) -> None:
        self.known = [node("mine"), node("another")]

    def init(self, **_: object) -> None:
        pass

    def remote(self, kind: type) -> type:
        return kind

    def nodes(self) -> list[dict[str, Any]]:
        return self.known

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(get_node_id=lambda: "mine")


@pytest.mark.parametrize(
    "known",
    [
        pytest.param([node("mine", alive=False), node("another")], id="its node is dead"),
        pytest.param([node("third")], id="another cluster has the address"),
    ],
)
def test_a_driver_that_the_cluster_does_not_know_ends(
    known: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, lost = FakeRay(), []
    monkeypatch.setitem(sys.modules, "ray", ray)

    async def main() -> None:
        workers = RayWorkers("127.0.0.2:6379", lambda: lost.append(True))
        await workers.connect()
        assert await workers.nodes(()) == ["another", "mine"]
        assert not lost
        ray.known = known
        await workers.nodes(())
        assert lost

    asyncio.run(main())
