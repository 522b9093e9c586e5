"""Counts thought and answer of a stream while it arrives, and separates them."""

from __future__ import annotations

from dataclasses import replace

from weft.core.ports.model import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from weft.serving.text import ReasoningParser
from weft.serving.text.reasoning_forms import TAGS, ReasoningTags


class ThoughtWatch:
    """One answer, whose prompt has `opened` the thought or not.

    `thought` and `answer` count tokens: the ids of a piece, else 1. Tags belong to the thought.
    """

    def __init__(self, *, opened: bool, tags: ReasoningTags = TAGS["think"]) -> None:
        self._parser = ReasoningParser(tags, opened=opened, known=True)
        self._opened = opened
        self._waiting = TextDelta("")  # ids and log probabilities whose text is held back
        self._undecided = 0
        self.thought = 0
        self.answer = 0
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.top_logprobs: list[tuple[float, ...]] = []

    @property
    def answering(self) -> bool:
        """Whether the answer has begun."""
        return self._parser.answering

    @property
    def thinking(self) -> bool:
        """Whether the thought is open."""
        return self._parser.thinking or (self._opened and not self._parser.answering)

    @property
    def holding(self) -> bool:
        """Whether the last text may be the beginning of a tag."""
        return self._parser.holding

    def take(self, delta: Delta) -> list[Delta]:
        """The pieces that `delta` completes."""
        if isinstance(delta, ToolCallDelta):
            return [delta]
        self.ids += delta.token_ids
        if isinstance(delta, ReasoningDelta):
            self.thought += len(delta.token_ids) or 1
            return [delta]
        self.logprobs += delta.logprobs
        self.top_logprobs += delta.top_logprobs
        before = self.thinking
        pieces = self._parser.feed(delta.text)
        self._count(before, len(delta.token_ids) or 1)
        self._waiting = _joined(self._waiting, delta)
        return [*pieces] if self.holding else self._with_ids(pieces)

    def end(self) -> list[Delta]:
        """The pieces that were held back: nothing follows."""
        return self._with_ids(self._parser.end())

    def _count(self, before: bool, tokens: int) -> None:
        """Count a piece; `before`: the thought was open before it."""
        if before or self.thinking:
            self.thought += tokens + self._undecided
        elif self._parser.answering:
            self.answer += tokens + self._undecided
        else:  # it may become the opening tag
            self._undecided += tokens
            return
        self._undecided = 0

    def _with_ids(self, pieces: list[TextDelta | ReasoningDelta]) -> list[Delta]:
        """`pieces`, the first of them with what waited for text."""
        waiting, self._waiting = self._waiting, TextDelta("")
        if not (waiting.token_ids or waiting.logprobs):
            return [*pieces]
        if not pieces:
            pieces = [ReasoningDelta("") if self.thinking else TextDelta("")]
        first, *rest = pieces
        if isinstance(first, TextDelta):
            return [replace(waiting, text=first.text), *rest]
        return [replace(first, token_ids=waiting.token_ids), *rest]


def _joined(first: TextDelta, then: TextDelta) -> TextDelta:
    return TextDelta(
        "",
        first.token_ids + then.token_ids,
        first.logprobs + then.logprobs,
        first.top_logprobs + then.top_logprobs,
    )
