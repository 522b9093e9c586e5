"""Tells reasoning between `<think>` and `</think>` from the answer after it, while both arrive."""

from __future__ import annotations

import re
from typing import Literal

from weft.core.ports.model import ReasoningDelta, TextDelta
from weft.serving.text.partial import partial

_OPEN, _CLOSE = "<think>", "</think>"
_TAG = re.compile(f"{_OPEN}|{_CLOSE}")
_MOST_BLANKS = 64


class Thinking:
    """Feed it an answer's text in pieces of any size.

    Reasoning is only looked for at the beginning; `opened` says that the prompt has begun it, so
    that its first tag may be missing. Where that is not said and the first tag is missing all the
    same, text before a closing tag is reasoning: it is held back until a tag, or the end. Blank
    space right after a tag belongs to the tag. Reasoning that never ends is reasoning.
    """

    def __init__(self, *, opened: bool) -> None:
        self._opened = opened
        self._state: Literal["start", "undecided", "thinking", "answer"] = "start"
        self._held = ""
        self._undecided: list[str] = []
        self._trim = False

    @property
    def thinking(self) -> bool:
        """True inside the reasoning."""
        return self._state == "thinking"

    @property
    def holding(self) -> bool:
        """True while some text waits for more of it."""
        return bool(self._held or self._undecided)

    def feed(self, text: str) -> list[TextDelta | ReasoningDelta]:
        """What `text` adds."""
        text, self._held = self._held + text, ""
        found: list[TextDelta | ReasoningDelta] = []
        if self._state == "start":
            text = self._begin(text)
        if self._state == "undecided":
            text = self._wait(text)
        if self._state == "thinking":
            text = self._think(text, found)
        if self._state == "answer" and (text := self._trimmed(text)):
            found.append(TextDelta(text))
        return found

    def end(self) -> list[TextDelta | ReasoningDelta]:
        """What was held back, now that nothing follows."""
        text, self._held = "".join((*self._undecided, self._held)), ""
        self._undecided.clear()
        if not text:
            return []
        reasoning = self.thinking or (self._opened and self._state == "start")
        return [ReasoningDelta(text) if reasoning else TextDelta(text)]

    def _begin(self, text: str) -> str:
        tag = text.lstrip()
        blanks = len(text) - len(tag)
        if blanks <= _MOST_BLANKS and tag.startswith(_OPEN):
            self._enter("thinking")
            return tag.removeprefix(_OPEN)
        if blanks <= _MOST_BLANKS and _OPEN.startswith(tag):
            self._held = text
            return ""
        if self._opened:
            self._enter("thinking")
        else:
            self._state = "undecided"
        return text

    def _wait(self, text: str) -> str:
        """Hold back what may be reasoning or the answer; once it is known, all that was held."""
        if found := _TAG.search(text):
            if found[0] == _CLOSE:
                self._enter("thinking")
            else:
                self._state = "answer"
            text = "".join((*self._undecided, text))
            self._undecided.clear()
            return text
        keep = len(text) - partial(text, (_OPEN, _CLOSE))
        if keep:
            self._undecided.append(text[:keep])
        self._held = text[keep:]
        return ""

    def _think(self, text: str, found: list[TextDelta | ReasoningDelta]) -> str:
        inside, tag, rest = text.partition(_CLOSE)
        if not tag:
            keep = len(text) - partial(text, (_CLOSE,))
            inside, self._held = text[:keep], text[keep:]
        if inside := self._trimmed(inside):
            found.append(ReasoningDelta(inside))
        if tag:
            self._enter("answer")
        return rest

    def _enter(self, state: Literal["thinking", "answer"]) -> None:
        self._state = state
        self._trim = True

    def _trimmed(self, text: str) -> str:
        if self._trim:
            text = text.lstrip()
            self._trim = not text
        return text
