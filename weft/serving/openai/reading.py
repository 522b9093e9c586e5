"""How one client words requests and reads answers where the server does neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from weft.core.ports.model import ModelRequest
from weft.serving.text import FORMATS, FormatName, ReasoningStyle, Splitter, spell


@dataclass(frozen=True, slots=True)
class Reading:
    """None leaves reasoning or tools to the server. Raises: `ValueError` for unknown names."""

    reasoning: ReasoningStyle | None = None
    tool_format: FormatName | None = None

    def __post_init__(self) -> None:
        styles = get_args(ReasoningStyle)
        if self.reasoning is not None and self.reasoning not in styles:
            raise ValueError(f"reasoning is one of {', '.join(styles)}, not {self.reasoning!r}")
        if self.tool_format is not None and self.tool_format not in FORMATS:
            there = ", ".join(FORMATS)
            raise ValueError(f"tool_format is one of {there}, not {self.tool_format!r}")

    def prepare(self, request: ModelRequest) -> tuple[ModelRequest, Splitter | None]:
        """What to ask the server, and what finds reasoning and calls in its answer.

        None where the text is the answer. Prompts of token ids are continued, not answered. Output
        that the server holds to a schema or grammar is nothing else from its first character.
        """
        if not request.messages:
            return request, None
        asked = request
        if self.tool_format is not None:
            asked = spell(request, self.tool_format)
        held = asked.schema is not None or asked.grammar is not None
        return asked, None if held else self._splitter(request)

    def _splitter(self, request: ModelRequest) -> Splitter | None:
        spelling = None
        if self.tool_format is not None and request.tools and request.tool_choice != "none":
            spelling = FORMATS[self.tool_format]
        if self.reasoning is None and spelling is None:
            return None
        return Splitter(self.reasoning, spelling, [tool.name for tool in request.tools])
