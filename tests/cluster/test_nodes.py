"""The cluster of this machine, as it is remembered; nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.cli.main import app
from weft.cluster.nodes import ClusterNode, LocalCluster, node_name, save_cluster


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_node_is_called_as_the_status_calls_it(own_home: Path) -> None:
    assert node_name("127.0.0.2:1", "127.0.0.3") == "127.0.0.3"
    nodes = (
        ClusterNode("head", "127.0.0.2", 1, "a"),
        ClusterNode("node1", "127.0.0.3", 2, "b"),
    )
    save_cluster(LocalCluster("127.0.0.2:1", "token", "folder", nodes))
    assert node_name("127.0.0.2:1", "127.0.0.3") == "node1"
    assert node_name("127.0.0.2:1", "127.0.0.9") == "127.0.0.9"
    assert node_name("10.0.0.1:1", "127.0.0.3") == "127.0.0.3"
    (own_home / "cluster.json").write_text("{", "utf-8")
    assert node_name("127.0.0.2:1", "127.0.0.3") == "127.0.0.3"


def up(*options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["cluster", "up", *options])
    return result.exit_code, " ".join(result.output.split())


def test_options_cannot_change_a_cluster_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    save_cluster(LocalCluster("127.0.0.2:1", "t", "f", (ClusterNode("head", "127.0.0.2", 1, "a"),)))
    monkeypatch.setattr(ClusterNode, "is_alive", True)
    assert up() == (0, "it runs already, at 127.0.0.2:1")
    code, said = up("--nodes", "4", "--label", "1=gpu")
    assert code
    assert "runs already: --nodes, --label cannot change it" in said
    assert "weft cluster down" in said
    assert "--nodes" in up("--nodes", "1")[1]


def test_a_variable_that_is_not_set_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH", raising=False)
    monkeypatch.setattr("weft.cluster.nodes.start_cluster", lambda *_: pytest.fail("it started"))
    code, said = up("--env", "PATH", "--env", "NO_SUCH")
    assert code
    assert "NO_SUCH is not set here" in said
