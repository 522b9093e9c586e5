"""A drawing as self-contained SVG text, without external fonts, scripts or styles."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise

from weft.cli.drawing import graph
from weft.cli.drawing.graph import KIND_PX, LABEL_PX, Box, EdgePath, GraphDrawing
from weft.cli.text import clean

_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def svg(drawing: GraphDrawing, title: str) -> str:
    """The drawing; `title` is its text alternative."""
    width, height = round(drawing.width), round(drawing.height)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{_FONT}">',
            f"<title>{escape(clean(title))}</title>",
            f'<rect width="100%" height="100%" fill="{graph.GROUND}"/>',
            *(piece for box in drawing.boxes if box.frame for piece in _frame(box)),
            *(piece for line in drawing.lines for piece in _line(line)),
            *(piece for box in drawing.boxes if not box.frame for piece in _box(box)),
            "</svg>\n",
        )
    )


def _frame(box: Box) -> Iterator[str]:
    colour = graph.kind_colour(box.kind)
    yield (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="8" fill="{colour}" fill-opacity="0.07" stroke="{colour}" stroke-opacity="0.55"/>'
    )
    yield _text(box.x + 12, box.y + 20, box.label, LABEL_PX, graph.INK, bold=bool(box.kind))
    right = box.x + box.width - 12
    yield _text(right, box.y + 19, box.kind, KIND_PX, colour, anchor="end")


def _box(box: Box) -> Iterator[str]:
    colour = graph.kind_colour(box.kind)
    middle = box.x + box.width / 2
    yield (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="6" fill="{graph.BOX}" stroke="{colour}" stroke-width="1.4"/>'
    )
    label_y = box.y + (18 if box.kind else 26)
    yield _text(middle, label_y, box.label, LABEL_PX, graph.INK, anchor="middle")
    yield _text(middle, box.y + 33, box.kind, KIND_PX, colour, anchor="middle")


def _line(line: EdgePath) -> Iterator[str]:
    colour, dash = graph.LINES[line.style], graph.DASHES[line.style]
    x, y = line.points[0]
    path = [f"M{x:.1f} {y:.1f}"]
    for (x1, y1), (x2, y2) in pairwise(line.points):
        half = (y1 + y2) / 2
        path.append(f"C{x1:.1f} {half:.1f} {x2:.1f} {half:.1f} {x2:.1f} {y2:.1f}")
    dashes = f' stroke-dasharray="{dash[0]} {dash[1]}"' if dash else ""
    yield f'<path d="{" ".join(path)}" fill="none" stroke="{colour}" stroke-width="1.4"{dashes}/>'
    x, y = line.points[-1]
    tip = f"M{x - 4:.1f} {y - 8:.1f}L{x:.1f} {y:.1f}L{x + 4:.1f} {y - 8:.1f}z"
    yield f'<path d="{tip}" fill="{colour}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    size: int,
    colour: str,
    *,
    anchor: str = "start",
    bold: bool = False,
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
        f'text-anchor="{anchor}"{weight}>{escape(text)}</text>'
    )
