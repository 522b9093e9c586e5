"""Separates the channels of an answer in OpenAI's harmony format, as gpt-oss writes it.

`<|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...<|return|>`
"""

from __future__ import annotations

import re
from typing import Final, Literal

from weft.core.ports.model import ReasoningDelta, TextDelta
from weft.serving.text.reasoning_forms import CHANNEL, HARMONY_MARKS, MESSAGE

_MARK: Final = re.compile("|".join(map(re.escape, HARMONY_MARKS)))
_ENDS: Final = frozenset({"<|end|>", "<|return|>", "<|call|>"})
_LONGEST_HEADER: Final = 256


class HarmonyParser:
    """The interface of `ReasoningParser`: the channel `final` is the answer, the others are
    reasoning. Text before any mark is the answer, as in a continued one; a header that never ends
    is text.
    """

    def __init__(self) -> None:
        self._state: Literal["start", "header", "body"] = "start"
        self._header = ""
        self._channel = "final"
        self._held = ""

    @property
    def thinking(self) -> bool:
        """Whether the text is outside the channel `final`."""
        return self._state == "header" or (self._state == "body" and self._channel != "final")

    @property
    def holding(self) -> bool:
        """Whether some text is held back."""
        return bool(self._held or self._header)

    def feed(self, text: str) -> list[TextDelta | ReasoningDelta]:
        """Add `text`; return the pieces that it completes."""
        text, self._held = self._held + text, ""
        found: list[TextDelta | ReasoningDelta] = []
        while mark := _MARK.search(text):
            self._between(text[: mark.start()], found)
            self._pass(mark[0])
            text = text[mark.end() :]
        keep = len(text) - _partial_mark(text)
        self._held = text[keep:]
        self._between(text[:keep], found)
        return found

    def end(self) -> list[TextDelta | ReasoningDelta]:
        """Return the text held back: nothing follows."""
        found: list[TextDelta | ReasoningDelta] = []
        text, self._held = self._held, ""
        if self._state == "header":
            self._header = ""  # a message was announced, and never came
            return found
        self._between(text, found)
        return found

    def _between(self, text: str, found: list[TextDelta | ReasoningDelta]) -> None:
        """Read text without marks."""
        if not text:
            return
        if self._state == "header":
            self._header += text
            if len(self._header) <= _LONGEST_HEADER:
                return
            text, self._header, self._channel = self._header, "", "final"
        self._state = "body"
        found.append(TextDelta(text) if self._channel == "final" else ReasoningDelta(text))

    def _pass(self, mark: str) -> None:
        if mark == MESSAGE:
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
