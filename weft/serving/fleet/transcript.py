"""What the caller of one model call has got so far, over all replicas that worked on it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

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
        self._calls: dict[int, ToolCall] = {}
        self._arguments: defaultdict[int, list[str]] = defaultdict(list)
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
    def calls(self) -> dict[int, ToolCall]:
        """The tool calls by index, their arguments as far as they go."""
        return {
            index: replace(call, arguments="".join(self._arguments[index]))
            for index, call in self._calls.items()
        }

    @property
    def empty(self) -> bool:
        """True while nothing of the answer has been delivered."""
        return not (self._text or self._reasoning or self.ids or self._calls)

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
        so_far = self._calls.get(delta.index, ToolCall("", "", ""))
        self._calls[delta.index] = ToolCall(so_far.id or delta.id, so_far.name or delta.name, "")
        self._arguments[delta.index].append(delta.arguments)
