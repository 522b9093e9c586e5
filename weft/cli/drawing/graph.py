"""A graph as boxes and edge paths in pixels, and the colours of all formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol

from weft.cli.drawing.layout import EdgePoint, Key, Layers, centres, layers
from weft.cli.text import one_line

LABEL_PX = 13
KIND_PX = 10
_LABEL_ADVANCE = 0.62 * LABEL_PX
_KIND_ADVANCE = 0.62 * KIND_PX
_LONGEST_LABEL = 30
_BOX_HEIGHT = 42.0
_PADDING = 14.0
_TITLE = 30.0
_COLUMN_GAP = 26.0
_ROW_GAP = 38.0

LineStyle = Literal["data", "after", "fallback", "degrade"]
Point = tuple[float, float]


class DrawableNode(Protocol):
    """A node to draw: see `weft.workflow`."""

    @property
    def id(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def inside(self) -> DrawableGraph | None: ...
    @property
    def groups(self) -> Sequence[tuple[str, DrawableGraph]]: ...
    @property
    def alternatives(self) -> Sequence[str]: ...


class DrawableEdge(Protocol):
    """An edge to draw."""

    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def style(self) -> LineStyle: ...


class DrawableGraph(Protocol):
    """The nodes of one scope and the edges between them."""

    @property
    def nodes(self) -> Sequence[DrawableNode]: ...
    @property
    def edges(self) -> Sequence[DrawableEdge]: ...


@dataclass(frozen=True, slots=True)
class Box:
    """A node; with `frame`, one that encloses others, with its label on top."""

    x: float
    y: float
    width: float
    height: float
    label: str
    kind: str
    frame: bool = False


@dataclass(frozen=True, slots=True)
class EdgePath:
    """A curve from node to node: cubic, vertical at each of its `points`."""

    points: tuple[Point, ...]
    style: LineStyle


@dataclass(frozen=True, slots=True)
class GraphDrawing:
    """Boxes in the order of painting, then edge paths."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[EdgePath, ...]

    def moved(self, dx: float, dy: float) -> GraphDrawing:
        """The drawing, moved right and down."""
        return replace(
            self,
            boxes=tuple(replace(box, x=box.x + dx, y=box.y + dy) for box in self.boxes),
            lines=tuple(
                replace(line, points=tuple((x + dx, y + dy) for x, y in line.points))
                for line in self.lines
            ),
        )


def draw_graph(view: DrawableGraph) -> GraphDrawing:
    """The layout of `view` with a margin; inner graphs are drawn inside of their nodes."""
    scope = _scope(view)
    moved = scope.moved(_PADDING, _PADDING)
    return replace(moved, width=scope.width + 2 * _PADDING, height=scope.height + 2 * _PADDING)


def _scope(view: DrawableGraph) -> GraphDrawing:
    parts = {node.id: _node(node) for node in view.nodes}
    edges = [edge for edge in view.edges if edge.source in parts and edge.target in parts]
    layered = layers(list(parts), [(edge.source, edge.target) for edge in edges])
    widths: dict[Key, float] = {name: part.width for name, part in parts.items()}
    x = centres(layered, widths, _COLUMN_GAP)
    left = min(
        (x[key] - widths.get(key, 0) / 2 for row in layered.rows for key in row), default=0.0
    )
    x = {key: at - left for key, at in x.items()}
    bands = _bands(layered, parts)
    boxes: list[Box] = []
    inner: list[EdgePath] = []
    for row, (top, bottom) in zip(layered.rows, bands, strict=True):
        for key in row:
            if isinstance(key, str):
                part = parts[key]
                placed = part.moved(x[key] - part.width / 2, (top + bottom - part.height) / 2)
                boxes += placed.boxes
                inner += placed.lines
    lines = [
        EdgePath(_knots(chain, x, bands, parts, layered), edge.style)
        for edge, chain in zip(edges, layered.chains, strict=True)
    ]
    width = max(
        (x[key] + widths.get(key, 0) / 2 for row in layered.rows for key in row), default=0.0
    )
    height = bands[-1][1] if bands else 0.0
    return GraphDrawing(width, height, tuple(boxes), (*lines, *inner))


def _bands(layered: Layers, parts: dict[str, GraphDrawing]) -> list[tuple[float, float]]:
    """The top and bottom of each row."""
    bands, at = [], 0.0
    for row in layered.rows:
        height = max((parts[key].height for key in row if isinstance(key, str)), default=0.0)
        bands.append((at, at + height))
        at += height + _ROW_GAP
    return bands


def _knots(
    chain: Sequence[Key],
    x: dict[Key, float],
    bands: Sequence[tuple[float, float]],
    parts: dict[str, GraphDrawing],
    layered: Layers,
) -> tuple[Point, ...]:
    """The points from source to target: straight down in rows, across only between them."""
    rows = {key: index for index, row in enumerate(layered.rows) for key in row}
    points: list[Point] = []
    for key in chain:
        top, bottom = bands[rows[key]]
        if isinstance(key, EdgePoint):
            points += [(x[key], top), (x[key], bottom)]
            continue
        half = parts[str(key)].height / 2
        middle = (top + bottom) / 2
        ends = [(x[key], middle + half), (x[key], bottom)]
        points += [(x[key], top), (x[key], middle - half)] if points else ends
    return tuple(points)


def _node(node: DrawableNode) -> GraphDrawing:
    label = one_line(node.label, _LONGEST_LABEL)
    kind = one_line(" or ".join((node.kind, *node.alternatives)), _LONGEST_LABEL)
    kind = "" if kind == label else kind
    groups = [("", node.inside)] if node.inside is not None else []
    groups += [(one_line(name, _LONGEST_LABEL), view) for name, view in node.groups]
    if groups:
        return _frame(label, kind, [_group(name, view) for name, view in groups])
    width = max(len(label) * _LABEL_ADVANCE, len(kind) * _KIND_ADVANCE) + 2 * _PADDING
    return GraphDrawing(width, _BOX_HEIGHT, (Box(0, 0, width, _BOX_HEIGHT, label, kind),), ())


def _group(name: str, view: DrawableGraph) -> GraphDrawing:
    return _frame(name, "", [_scope(view)]) if name else _scope(view)


def _frame(label: str, kind: str, parts: Sequence[GraphDrawing]) -> GraphDrawing:
    """`parts` next to each other in a titled frame."""
    boxes: list[Box] = []
    lines: list[EdgePath] = []
    inner = sum(part.width for part in parts) + _COLUMN_GAP * (len(parts) - 1)
    title = len(label) * _LABEL_ADVANCE + len(kind) * _KIND_ADVANCE + _PADDING
    width = max(inner, title) + 2 * _PADDING
    at = (width - inner) / 2
    for part in parts:
        placed = part.moved(at, _TITLE)
        boxes += placed.boxes
        lines += placed.lines
        at += part.width + _COLUMN_GAP
    height = _TITLE + max((part.height for part in parts), default=0.0) + _PADDING
    return GraphDrawing(
        width, height, (Box(0, 0, width, height, label, kind, True), *boxes), tuple(lines)
    )


def curve(points: Sequence[Point], steps: int) -> list[Point]:
    """The curve through `points`, as `steps` straight pieces between each two of them.

    Each is the cubic whose control points lie half-way down, above and below the ends.
    """
    pieces = [points[0]]
    for (x1, y1), (x2, y2) in pairwise(points):
        for step in range(1, steps + 1):
            t = step / steps
            across, down = t * t * (3 - 2 * t), t * (1.5 - t * (1.5 - t))
            pieces.append((x1 + (x2 - x1) * across, y1 + (y2 - y1) * down))
    return pieces


INK = "#1d2129"
SOFT = "#636b78"
GROUND = "#ffffff"
BOX = "#f7f8fa"

_KINDS = {
    "tool": "#3f9a8c",
    "call": "#3f9a8c",
    "model": "#4c86c6",
    "map": "#8a6fc0",
    "loop": "#8a6fc0",
    "branch": "#8a6fc0",
    "break": "#8a6fc0",
    "workflow": "#8a6fc0",
    "reduce": "#b07c2c",
    "join": "#b07c2c",
    "ask": "#c0568c",
}
LINES: dict[LineStyle, str] = {
    "data": "#5d6675",
    "after": "#98a1ae",
    "fallback": "#cf3b3b",
    "degrade": "#c07b1a",
}
DASHES: dict[LineStyle, tuple[int, int] | None] = {
    "data": None,
    "after": (2, 4),
    "fallback": (7, 4),
    "degrade": (7, 4),
}


def kind_colour(kind: str) -> str:
    """The colour of nodes whose `kind` begins with this word."""
    return _KINDS.get(kind.partition(" ")[0], SOFT)
