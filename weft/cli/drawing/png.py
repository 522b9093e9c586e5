"""A drawing as PNG bytes, with Pillow (the extra `png`)."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING

from weft.cli.drawing import graph
from weft.cli.drawing.graph import KIND_PX, LABEL_PX, Box, EdgePath, GraphDrawing, Point, curve
from weft.core.errors import CapabilityError
from weft.core.extras import optional_packages

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_SCALE = 2  # for dense screens
_SMOOTH = 2  # drawn larger and reduced, for smooth lines
_PIXELS = 80_000_000


def png(drawing: GraphDrawing) -> bytes:
    """The drawing at twice its size in pixels.

    Raises: `CapabilityError` without Pillow, or for a drawing that is too large for a bitmap.
    """
    with optional_packages("PNG (.svg and .mmd need none)", CapabilityError):
        from PIL import Image, ImageDraw
    scale = _SCALE * _SMOOTH
    width, height = round(drawing.width * scale), round(drawing.height * scale)
    if width * height > _PIXELS:
        raise CapabilityError("the graph is too large for a PNG", hint="write .svg instead")
    image = Image.new("RGB", (max(width, 1), max(height, 1)), graph.GROUND)
    canvas = _PngCanvas(ImageDraw.Draw(image), scale)
    for box in drawing.boxes:
        if box.frame:
            canvas.frame(box)
    for line in drawing.lines:
        canvas.line(line)
    for box in drawing.boxes:
        if not box.frame:
            canvas.box(box)
    size = (max(width // _SMOOTH, 1), max(height // _SMOOTH, 1))
    reduced = image.resize(size, Image.Resampling.LANCZOS)
    out = BytesIO()
    reduced.save(out, "PNG", optimize=True)
    return out.getvalue()


class _PngCanvas:
    def __init__(self, draw: ImageDraw, scale: int) -> None:
        self._draw = draw
        self._scale = scale

    def frame(self, box: Box) -> None:
        colour = graph.kind_colour(box.kind)
        self._rectangle(box, 8, _tint(colour, 0.07), _tint(colour, 0.55))
        self._text((box.x + 12, box.y + 15.5), box.label, LABEL_PX, graph.INK, "lm")
        self._text((box.x + box.width - 12, box.y + 15.5), box.kind, KIND_PX, colour, "rm")

    def box(self, box: Box) -> None:
        colour = graph.kind_colour(box.kind)
        middle = box.x + box.width / 2
        self._rectangle(box, 6, graph.BOX, colour)
        label_y = box.y + (14 if box.kind else box.height / 2)
        self._text((middle, label_y), box.label, LABEL_PX, graph.INK, "mm")
        self._text((middle, box.y + 30), box.kind, KIND_PX, colour, "mm")

    def line(self, line: EdgePath) -> None:
        colour, dash = graph.LINES[line.style], graph.DASHES[line.style]
        width = round(1.4 * self._scale)
        points = curve(line.points, 24)
        for piece in _dashes(points, dash) if dash else [points]:
            flat = [value * self._scale for point in piece for value in point]
            self._draw.line(flat, fill=colour, width=width, joint="curve")
        x, y = line.points[-1]
        tip = [(x - 4, y - 8), (x, y), (x + 4, y - 8)]
        self._draw.polygon([(a * self._scale, b * self._scale) for a, b in tip], fill=colour)

    def _rectangle(self, box: Box, radius: int, fill: str, outline: str) -> None:
        left, top = box.x * self._scale, box.y * self._scale
        right, bottom = left + box.width * self._scale, top + box.height * self._scale
        self._draw.rounded_rectangle(
            (left, top, right, bottom),
            radius * self._scale,
            fill=fill,
            outline=outline,
            width=round(1.4 * self._scale),
        )

    def _text(self, at: Point, text: str, size: int, colour: str, anchor: str) -> None:
        from PIL import ImageFont

        font = ImageFont.load_default(size * self._scale)
        place = (at[0] * self._scale, at[1] * self._scale)
        self._draw.text(place, text, fill=colour, font=font, anchor=anchor)


def _tint(colour: str, strength: float) -> str:
    """`colour` over white."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(255 + (part - 255) * strength):02x}" for part in parts)


def _dashes(points: list[Point], dash: tuple[int, int]) -> list[list[Point]]:
    """The visible pieces of a dashed line."""
    pieces: list[list[Point]] = []
    drawn, left = True, float(dash[0])
    current = [points[0]]
    for start, end in pairwise(points):
        length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
        at = 0.0
        while length - at > left:
            at += left
            share = at / length
            cut = (start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share)
            if drawn:
                pieces.append([*current, cut])
            drawn, current = not drawn, [cut]
            left = float(dash[0] if drawn else dash[1])
        left -= length - at
        current.append(end)
    return [*pieces, current] if drawn and len(current) > 1 else pieces
