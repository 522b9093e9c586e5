"""Graphs of tools in TaskBench's form; its own files where the data is here."""

import json
import os
from pathlib import Path

import pytest

from weft.core.errors import BuildError
from weft.planner.routing import read_tool_graph, shortest_route

DATA = Path(os.environ.get("WEFT_DATA") or Path(__file__).parents[4] / "shared" / "data")
TASKBENCH = DATA / "planner" / "taskbench"
TYPED = {
    "nodes": [
        {"id": "speak", "input-type": ["text"], "output-type": ["audio"]},
        {"id": "mix", "input-type": ["audio", "audio"], "output-type": ["audio"]},
        {"id": "listen", "input-type": ["audio"], "output-type": ["text"]},
    ],
    "links": [
        {"source": "speak", "target": "mix", "type": "audio"},
        {"source": "mix", "target": "listen", "type": "audio"},
        {"source": "speak", "target": "listen", "type": "audio"},
    ],
}


def test_types_become_parameters(tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(TYPED))
    graph = read_tool_graph(tmp_path / "graph.json")
    mix = graph.tools["mix"]
    assert mix.needs == {"audio": ("audio", "speak"), "audio_2": ("audio", "speak")}
    assert set(graph.follows()) == {("speak", "mix"), ("mix", "listen"), ("speak", "listen")}
    way = shortest_route(graph, {"text"}, ["mix"], lambda _: 1.0)
    assert way is not None
    assert [hop.tool for hop in way.steps] == ["speak", "mix"]


def test_tools_without_types_follow_links(tmp_path: Path) -> None:
    plain = {
        "nodes": [{"id": "a", "parameters": []}, {"id": "b", "parameters": []}],
        "links": [{"source": "a", "target": "b", "type": "complete"}],
    }
    (tmp_path / "graph.json").write_text(json.dumps(plain))
    graph = read_tool_graph(tmp_path / "graph.json")
    assert [demand.sources for demand in graph.tools["b"].demands] == [("start", "a")]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"nodes": 3, "links": []}', '{"nodes": [[]], "links": [[]]}']
)
def test_what_is_no_graph(tmp_path: Path, text: str) -> None:
    file = tmp_path / "graph.json"
    file.write_text(text)
    with pytest.raises(BuildError, match="is no graph of tools"):
        read_tool_graph(file)
    with pytest.raises(BuildError, match="is no graph of tools"):
        read_tool_graph(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("name", "tools", "links"),
    [("huggingface", 23, 225), ("multimedia", 40, 449), ("dailylifeapis", 40, 1560)],
)
def test_the_published_graphs(name: str, tools: int, links: int) -> None:
    file = TASKBENCH / f"{name}.graph_desc.json"
    if not file.is_file():
        pytest.skip(f"TaskBench's tool graphs are not at {TASKBENCH}: set WEFT_DATA")
    graph = read_tool_graph(file)
    assert (len(graph.tools), len(list(graph.follows()))) == (tools, links)
