"""A cluster in this process, with a node for each pool, and flows whose tools say what they got."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import weft
from tests.cluster.fake_workers import FakeBridge, FakeWorkers

POOLS = {name: {"labels": [name]} for name in ("default", "gpu", "big")}
TOOLS = """
import weft

@weft.tool(pure=True)
def note(n: int) -> int:
    return n

@weft.tool
def own(n: int) -> int:
    return n
"""
USE = {"note": "./tools.py:note", "own": {"use": "./tools.py:own", "on": "big"}}
Placed = dict[str, list[int]]


class FakeCluster:
    """A folder for flows, and the cluster `ray`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers = FakeWorkers(**{name: (name,) for name in POOLS})
        self.bridge = FakeBridge(self.workers)
        self.ray = weft.Ray("127.0.0.99:1", pools=POOLS, content=folder / "content")
        (folder / "tools.py").write_text(TOOLS, "utf-8")

    def flow(self, nodes: dict[str, Any], name: str = "flow.yaml", **more: Any) -> weft.Flow:
        """A flow with these nodes, each of which is an output."""
        outputs = {node: f"{{{{ {node} }}}}" for node in nodes}
        document = {"name": "placed", "tools": USE, "nodes": nodes, "outputs": outputs, **more}
        (self.folder / name).write_text(json.dumps(document), "utf-8")
        return weft.load(self.folder / name)

    def placed(self) -> Placed:
        """The numbers that the tools got, by pool; forgets them."""
        found: Placed = {}
        for worker in self.workers.started:
            found.setdefault(worker.node, []).extend(each["n"] for each in worker.calls)
            worker.calls.clear()
        return {pool: sorted(numbers) for pool, numbers in found.items() if numbers}


def call(n: object, tool: str = "note", **more: Any) -> dict[str, Any]:
    """A node that calls a tool with a number."""
    return {"tool": tool, "with": {"n": n}, **more}
