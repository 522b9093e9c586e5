"""Splits an answer's text into reasoning, text and tool calls while it arrives."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from weft.core.ports.model import ReasoningDelta, TextDelta
from weft.serving.text.formats import ToolFormat
from weft.serving.text.found import FoundCall, Piece
from weft.serving.text.thinking import Thinking
from weft.serving.text.tool_text import ToolText

ReasoningStyle = Literal["think", "think-open"]
_BLOCK_CHARS = 4096  # What is left of a block is copied at each step.


class Splitter:
    """Feed it the text of one answer in pieces of any size: the parts, put together, are the same.

    `reasoning`: how the model marks it, "think-open" where the prompt ends with the opening tag;
    None leaves it in the text. `spelling` and `known`: how it spells calls, of which tools; None
    leaves them in the text. Calls are not looked for in reasoning.
    """

    def __init__(
        self,
        reasoning: ReasoningStyle | None = None,
        spelling: ToolFormat | None = None,
        known: Collection[str] = (),
    ) -> None:
        self._thinking = Thinking(opened=reasoning == "think-open") if reasoning else None
        self._tools = ToolText(spelling, known) if spelling else None

    @property
    def thinking(self) -> bool:
        """True inside the reasoning."""
        return self._thinking is not None and self._thinking.thinking

    @property
    def holding(self) -> bool:
        """True while some text waits for more of it."""
        return any(part.holding for part in (self._thinking, self._tools) if part)

    def feed(self, text: str) -> list[Piece]:
        """What `text` adds, in order. No piece is empty."""
        found: list[Piece] = []
        for start in range(0, len(text), _BLOCK_CHARS):
            block = text[start : start + _BLOCK_CHARS]
            found += self._parts(
                self._thinking.feed(block) if self._thinking else [TextDelta(block)]
            )
        return found

    def end(self) -> list[Piece]:
        """What was held back, now that nothing follows."""
        found = self._parts(self._thinking.end() if self._thinking else [])
        return found + (_pieces(self._tools.end()) if self._tools else [])

    def _parts(self, pieces: list[TextDelta | ReasoningDelta]) -> list[Piece]:
        found: list[Piece] = []
        for piece in pieces:
            if self._tools is None or isinstance(piece, ReasoningDelta):
                found.append(piece)
            else:
                found += _pieces(self._tools.feed(piece.text))
        return found


def _pieces(found: list[str | FoundCall]) -> list[Piece]:
    return [TextDelta(part) if isinstance(part, str) else part for part in found]
