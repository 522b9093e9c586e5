"""The colours of kinds of nodes and styles of lines, the same in every format."""

from __future__ import annotations

from weft.cli.drawing.picture import LineStyle

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
    """The colour that marks nodes of `kind`, whose first word counts."""
    return _KINDS.get(kind.partition(" ")[0], SOFT)
