"""What is found in an answer's text; does not know how."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.ports.model import ReasoningDelta, TextDelta


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A whole tool call. `arguments` is the JSON object as the model wrote it, not yet checked."""

    name: str
    arguments: str


Piece = TextDelta | ReasoningDelta | FoundCall
