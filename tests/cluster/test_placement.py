"""Where tools run: what a program says, and what is refused before anything runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weft
from weft.core.errors import BuildError, PlacementError, SourceError

TOOLS = """
import weft

@weft.tool
def near() -> int:
    return 1
"""
FLOW = """
name: placed
tools:
  near: {{use: "./tools.py:near"{on}}}
{run}
nodes:
  one: {{tool: near}}
outputs: {{one: "{{{{ one }}}}"}}
"""


@pytest.fixture
def write(tmp_path: Path) -> object:
    (tmp_path / "tools.py").write_text(TOOLS, "utf-8")

    def make(on: str = "", run: str = "") -> weft.Flow:
        file = tmp_path / "flow.yaml"
        on = f", on: {on}" if on else ""
        file.write_text(FLOW.format(on=on, run=run and f"run: {run}"), "utf-8")
        return weft.load(file)

    return make


@pytest.mark.parametrize(
    ("on", "resource", "pool"),
    [
        (None, None, "default"),
        (None, "gpu", "gpu"),
        (None, "disk", "default"),
        ("gpu", None, "gpu"),
        ("local", "gpu", None),
    ],
)
def test_the_pool_of_a_tool(on: str | None, resource: str | None, pool: str | None) -> None:
    ray = weft.Ray(pools={"default": {}, "gpu": {"labels": ["gpu"]}})
    assert ray.pool_of(on, resource) == pool
    assert weft.Ray(pools={"gpu": {}}).pool_of(on, "gpu") == (None if on == "local" else "gpu")
    assert weft.Ray(pools={"gpu": {}}).pool_of(None, None) is None


@pytest.mark.parametrize(
    "bad",
    [
        {"address": "ray://h:1"},
        {"address": "host"},
        {"address": "host:99999"},
        {"pools": {"local": {}}},
        {"pools": {"a b": {}}},
        {"pools": {"gpu": {"label": ["gpu"]}}},
        {"pools": {"gpu": {"workers": 0}}},
        {"pools": {"gpu": {"labels": [1]}}},
        {"pools": {"gpu": 3}},
        {"silence_s": 0},
    ],
)
def test_a_bad_cluster_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(BuildError):
        weft.Ray(**bad)  # type: ignore[arg-type]


def test_a_pool_needs_a_cluster(write) -> None:  # type: ignore[no-untyped-def]
    flow = write(on="gpu")
    flow.check()
    with pytest.raises(SourceError, match="near is to run on the pool gpu, without a cl") as raised:
        flow.run_sync()
    assert "--on local" in str(raised.value.hint)
    assert isinstance(raised.value.__cause__, PlacementError)
    assert flow.run_sync(on="local").outputs == {"one": 1}


def test_an_unknown_pool_is_named(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    flow = write(on="gpus", run="{on: ray, pools: {gpu: {}}}")
    with pytest.raises(BuildError, match="gpus") as raised:
        flow.run_sync()
    assert "gpu" in str(raised.value.hint)
    assert isinstance(raised.value, SourceError)
    line = (tmp_path / "flow.yaml").read_text("utf-8").splitlines()[raised.value.line - 1]
    assert line[raised.value.column - 1 :] == "gpus}"


def test_a_tool_stays_here_where_it_says_so(write) -> None:  # type: ignore[no-untyped-def]
    flow = write(on="local", run="{on: ray, address: '127.0.0.99:1'}")
    assert flow.run_sync().outputs == {"one": 1}


def test_a_closure_cannot_be_placed() -> None:
    @weft.tool
    def here() -> int:
        return 1

    flow = weft.Flow("closed")
    flow.output(one=flow.tool(here))
    with pytest.raises(PlacementError, match="here"):
        flow.run_sync(on=weft.Ray("127.0.0.99:1"))


@pytest.mark.parametrize("on", ["ray", 3])
def test_on_is_a_cluster_or_local(write, on: object) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BuildError, match="`on`"):
        write().run_sync(on=on)


@pytest.mark.parametrize("key", ["mcp: {command: [x]}", "memory: true"])
def test_a_server_is_not_placed(tmp_path: Path, key: str) -> None:
    file = tmp_path / "flow.yaml"
    text = f"name: a\ntools:\n  s: {{{key}, on: gpu}}\nnodes: {{a: {{value: 1}}}}\n"
    file.write_text(text, "utf-8")
    with pytest.raises(BuildError, match="`on` does not go with"):
        weft.load(file)


def test_ray_is_imported_in_the_bridge_alone() -> None:
    code = (
        "import sys, weft, weft.cluster.tools, weft.cluster.nodes, weft.cluster.bridge; weft.Ray; "
        "sys.exit('ray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
