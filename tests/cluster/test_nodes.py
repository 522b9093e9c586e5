"""The cluster of this machine, as it is remembered; nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest

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
