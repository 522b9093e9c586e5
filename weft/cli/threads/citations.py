"""What the markers in an answer stand for, a line for each. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.cli.text import one_line
from weft.reasoning.thought import Thought

_MOST: Final = 20
_NAME_CHARS: Final = 60
_TEXT_CHARS: Final = 120


def citations(thought: Thought) -> Iterator[str]:
    """Marker, document, character range and the beginning of what stands there."""
    for piece in thought.evidence[:_MOST]:
        place = f"{one_line(piece.document, _NAME_CHARS)} {piece.start}-{piece.end}"
        yield f"[{one_line(piece.marker, 12)}] {place}: {one_line(piece.text, _TEXT_CHARS)}"
    if len(thought.evidence) > _MOST:
        yield f"and {len(thought.evidence) - _MOST} more"
