"""Graph drawings: nothing overlaps, edges go down, the files are what they claim to be."""

from __future__ import annotations

import io
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.hostile import ALL
from weft.cli.drawing.graph import Box, GraphDrawing, LineStyle, draw_graph
from weft.cli.drawing.png import png
from weft.cli.drawing.svg import svg
from weft.core.errors import CapabilityError


@dataclass(frozen=True)
class Node:
    id: str
    label: str
    kind: str = "tool"
    inside: Graph | None = None
    groups: tuple[tuple[str, Graph], ...] = ()
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edge:
    source: str
    target: str
    style: LineStyle = "data"


@dataclass(frozen=True)
class Graph:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...] = ()


@st.composite
def graphs(draw: st.DrawFn, depth: int = 2) -> Graph:
    nodes = []
    for index in range(draw(st.integers(1, 7))):
        inside = draw(graphs(depth - 1)) if depth and draw(st.integers(0, 4)) == 0 else None
        groups = ()
        if depth and draw(st.integers(0, 6)) == 0:
            groups = (("yes", draw(graphs(depth - 1))), ("no", draw(graphs(depth - 1))))
        label = draw(st.text(max_size=40)) if depth == 2 else f"n{index}"
        nodes.append(Node(f"n{index}", label, "tool", inside, groups))
    edges = [
        Edge(f"n{a}", f"n{b}", draw(st.sampled_from(["data", "after", "fallback", "degrade"])))
        for a, b in combinations(range(len(nodes)), 2)
        if draw(st.integers(0, 3)) == 0
    ]
    return Graph(tuple(nodes), tuple(edges))


def apart(a: Box, b: Box) -> bool:
    return (
        a.x + a.width <= b.x + 1e-6
        or b.x + b.width <= a.x + 1e-6
        or a.y + a.height <= b.y + 1e-6
        or b.y + b.height <= a.y + 1e-6
    )


def within(a: Box, b: Box) -> bool:
    return (
        b.x <= a.x
        and b.y <= a.y
        and a.x + a.width <= b.x + b.width + 1e-6
        and a.y + a.height <= b.y + b.height + 1e-6
    )


def check(drawn: GraphDrawing) -> None:
    for a, b in combinations(drawn.boxes, 2):
        assert apart(a, b) or (b.frame and within(a, b)) or (a.frame and within(b, a))
    whole = Box(0, 0, drawn.width, drawn.height, "", "")
    assert all(within(box, whole) for box in drawn.boxes)
    for line in drawn.lines:
        heights = [y for _, y in line.points]
        assert heights == sorted(heights)
        assert heights[0] < heights[-1]


@settings(max_examples=60)
@given(graphs())
def test_boxes_keep_apart_and_lines_go_down(graph: Graph) -> None:
    drawn = draw_graph(graph)
    check(drawn)
    ET.fromstring(svg(drawn, "a graph"))


def test_thirty_nodes_are_narrow_enough_to_read() -> None:
    nodes = tuple(Node(f"n{i}", f"node_{i}") for i in range(30))
    edges = tuple(Edge(f"n{i // 2}", f"n{i}") for i in range(1, 30))
    drawn = draw_graph(Graph(nodes, edges))
    check(drawn)
    assert drawn.width < 1_600
    assert drawn.height < 700


def test_a_tree_has_no_crossings() -> None:
    nodes = tuple(Node(f"n{i}", f"n{i}") for i in range(15))
    edges = tuple(Edge(f"n{(i - 1) // 2}", f"n{i}") for i in range(14, 0, -1))
    drawn = draw_graph(Graph(nodes, edges))
    for a, b in combinations(drawn.lines, 2):
        if a.points[0][1] == b.points[0][1]:
            starts, ends = a.points[0][0] - b.points[0][0], a.points[-1][0] - b.points[-1][0]
            assert starts * ends >= 0


def test_svg_escapes_labels() -> None:
    text = svg(draw_graph(Graph((Node("n", ALL, ALL),))), ALL)
    ET.fromstring(text)
    assert "<script" not in text
    assert "<img" not in text


def test_png_is_an_image_of_twice_the_size() -> None:
    image = pytest.importorskip("PIL.Image")
    drawn = draw_graph(Graph((Node("a", "a"), Node("b", "b")), (Edge("a", "b", "after"),)))
    opened = image.open(io.BytesIO(png(drawn)))
    assert opened.size == (round(drawn.width * 4) // 2, round(drawn.height * 4) // 2)
    assert len(opened.getcolors(1 << 20)) > 3


def test_png_without_pillow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(CapabilityError, match="pillow is missing for PNG"):
        png(draw_graph(Graph((Node("a", "a"),))))


def test_a_graph_too_large_for_a_bitmap_is_refused() -> None:
    with pytest.raises(CapabilityError, match="too large"):
        png(GraphDrawing(100_000, 100_000, (), ()))


def test_an_empty_graph_is_an_empty_picture() -> None:
    assert draw_graph(Graph(())).boxes == ()
