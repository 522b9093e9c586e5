"""What the caller of one model call has got so far, over all replicas that worked on it."""

from __future__ import annotations

from weft.core.ports.model import (
    Delta,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from weft.core.values import ToolCall


class Transcript:
    """Grows by `note`.

    prompt_ids   the prompt as tokens, empty while unknown
    told         the caller knows that the prompt is computed
    whole        `ids` are the tokens of exactly `text`, and there is nothing else
    sure         the last of `ids` surely ends a character (see `Seam`)
    legs         how many replicas have been asked
    calls        the tool calls by index, their arguments as far as they go
    """

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self.prompt_ids = request.prompt_token_ids
        self.told = False
        self.whole = True
        self.sure = True
        self.ids: list[int] = []
        self.logprobs = 0
        self.legs = 0
        self.calls: dict[int, ToolCall] = {}
        self._text: list[str] = []
        self._reasoning: list[str] = []

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(self._reasoning)

    @property
    def empty(self) -> bool:
        """True while nothing of the answer has been delivered."""
        return not (self._text or self._reasoning or self.ids or self.calls)

    def prefilled(self, event: Prefilled) -> bool:
        """The prompt is computed; true if that is news to the caller."""
        self.prompt_ids = self.prompt_ids or event.prompt_token_ids
        news, self.told = not self.told, True
        return news

    def note(self, delta: Delta) -> None:
        """`delta` goes to the caller."""
        match delta:
            case TextDelta():
                self.whole &= bool(delta.token_ids) or not delta.text
                self._text.append(delta.text)
                self.ids += delta.token_ids
                self.logprobs += len(delta.logprobs)
            case ReasoningDelta():
                self.whole = False
                self._reasoning.append(delta.text)
                self.ids += delta.token_ids
            case ToolCallDelta():
                self.whole = False
                self._note_call(delta)

    def _note_call(self, delta: ToolCallDelta) -> None:
        so_far = self.calls.get(delta.index, ToolCall("", "", ""))
        self.calls[delta.index] = ToolCall(
            so_far.id or delta.id,
            so_far.name or delta.name,
            so_far.arguments + delta.arguments,
        )
