"""Separates the channels of an answer in OpenAI's harmony format, as gpt-oss writes it.

`<|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...<|return|>`
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal

from weft.core.ports.model import ReasoningDelta, TextDelta
from weft.serving.text.formats import FoundCall, Piece
from weft.serving.text.reasoning_forms import CHANNEL, HARMONY_MARKS, MESSAGE

_MARK: Final = re.compile("|".join(map(re.escape, HARMONY_MARKS)))
_ENDS: Final = frozenset({"<|end|>", "<|return|>", "<|call|>"})
_LONGEST_HEADER: Final = 256
_RECIPIENT: Final = re.compile(r"(?:^|\s)to=(?:functions\.)?([^\s<]+)")


class HarmonyParser:
    """The interface of `ReasoningParser`: the channel `final` is the answer, the others are
    reasoning.

    A message to one of the `known` tools is a call; one that is cut, or to a tool that was not
    offered, is text, as in the other formats. Text before any mark is the answer, as in a continued
    one; a header that never ends is text.
    """

    def __init__(self, known: Collection[str] = ()) -> None:
        self._known = known
        self._recipient = ""
        self._call: list[str] = []
        self._state: Literal["start", "header", "body"] = "start"
        self._header = ""
        self._channel = "final"
        self._held = ""

    @property
    def thinking(self) -> bool:
        """Whether the text is outside the channel `final` and outside calls."""
        if self._recipient:
            return False
        return self._state == "header" or (self._state == "body" and self._channel != "final")

    @property
    def holding(self) -> bool:
        """Whether some text is held back."""
        return bool(self._held or self._header or self._call)

    def feed(self, text: str) -> list[Piece]:
        """Add `text`; return the pieces that it completes."""
        text, self._held = self._held + text, ""
        found: list[Piece] = []
        while mark := _MARK.search(text):
            self._between(text[: mark.start()], found)
            self._pass(mark[0], found)
            text = text[mark.end() :]
        keep = len(text) - _partial_mark(text)
        self._held = text[keep:]
        self._between(text[:keep], found)
        return found

    def end(self) -> list[Piece]:
        """Return the text held back: nothing follows."""
        found: list[Piece] = []
        text, self._held = self._held, ""
        if self._state == "header":
            self._header = ""  # a message was announced, and never came
            return found
        self._between(text, found)
        self._end_call(found, whole=False)
        return found

    def _between(self, text: str, found: list[Piece]) -> None:
        """Read text without marks."""
        if not text:
            return
        if self._state == "header":
            self._header += text
            if len(self._header) <= _LONGEST_HEADER:
                return
            text, self._header, self._channel = self._header, "", "final"
            self._recipient = ""
        self._state = "body"
        if self._recipient:
            self._call.append(text)
            return
        found.append(TextDelta(text) if self._channel == "final" else ReasoningDelta(text))

    def _end_call(self, found: list[Piece], *, whole: bool) -> None:
        """The message to a tool is over; `whole`: the model itself ended it."""
        body = "".join(self._call)
        self._call.clear()
        if not self._recipient:
            return
        if whole and self._recipient in self._known:
            found.append(FoundCall(self._recipient, body.strip() or "{}"))
        elif body:
            found.append(TextDelta(body))

    def _pass(self, mark: str, found: list[Piece]) -> None:
        if self._state == "body":
            self._end_call(found, whole=mark in _ENDS)
        if mark == MESSAGE:
            recipient = _RECIPIENT.search(self._header)
            self._recipient = recipient[1] if recipient else ""
            name = self._header.rpartition(CHANNEL)[2].split()
            self._channel = name[0] if CHANNEL in self._header and name else "final"
            self._state, self._header = "body", ""
        elif mark in _ENDS:
            self._state, self._header = "header", ""
        else:
            self._state, self._header = "header", self._header + mark


def _partial_mark(text: str) -> int:
    """The length of the end of `text` that may begin a mark."""
    at = text.rfind("<")
    tail = text[at:] if at >= 0 else ""
    begins = tail and any(mark.startswith(tail) for mark in HARMONY_MARKS)
    return len(tail) if begins else 0
