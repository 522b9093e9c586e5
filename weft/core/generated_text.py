"""Text that a model wrote: blank or not, without its thought, without its code fence."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_INVISIBLE: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
_FENCE: Final = "```"
THINK, THINK_END = "<think>", "</think>"
_FINAL: Final = "<|channel|>final<|message|>"
THOUGHTS: Final = (
    (THINK, THINK_END),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>analysis<|message|>", f"<|end|><|start|>assistant{_FINAL}"),
)
"""What begins a thought and what ends it: in most models, Mistral's, and harmony (gpt-oss)."""
THOUGHT_ENDS: Final = (THINK_END, "[/THINK]", _FINAL)
"""The last mark before the answer, in each form."""
_BEGIN: Final = "|".join(re.escape(begin) for begin, _ in THOUGHTS)
_END: Final = "|".join(map(re.escape, THOUGHT_ENDS))
_REASONED: Final = re.compile(
    rf"\A.*(?:{_END})|\A\s*(?:{_BEGIN}).*|<\|(?:end|return)\|>\s*\Z", re.DOTALL
)
"""Templates may have written the opening tag, so that an answer only has the closing one."""


def is_blank(text: str) -> bool:
    """Whether nothing of `text` can be seen: white space, zero-width and control characters."""
    return all(unicodedata.category(char) in _INVISIBLE for char in text)


def without_thought(text: str) -> str:
    """`text` without the thought before the answer (`THOUGHTS`), which may have no opening tag.

    A thought that never ends leaves no answer.
    """
    return _REASONED.sub("", text)


def open_thought(text: str) -> str:
    """What ends the thought in which `text` ends; empty where it ends in none."""
    for begin, end in THOUGHTS:
        at = text.rfind(begin)
        if at >= 0 and not any(each in text[at:] for each in (end, _FINAL)):
            return end
    return ""


def opening_of_thought(prompt: str) -> str:
    """The end of `prompt` that opens a thought, with the blanks after it; empty without one."""
    solid = prompt.rstrip()
    begin = next((begin for begin, _ in THOUGHTS if solid.endswith(begin)), "")
    return begin + prompt[len(solid) :] if begin else ""


def unfenced(text: str) -> str:
    """The content of the code fence that is all of `text`; `text` itself without one."""
    plain = text.strip()
    if len(plain) < 2 * len(_FENCE) or not (plain.startswith(_FENCE) and plain.endswith(_FENCE)):
        return text
    inside = plain[len(_FENCE) : -len(_FENCE)]
    return inside[4:].strip() if inside[:4].lower() == "json" else inside.strip()


_BEGUN: Final = (
    *THOUGHTS[:2],
    (THOUGHTS[2][0], _FINAL),
    ("Here is my thought process:", "Here is my response:"),
    ("Here's my thought process:", "Here's my response:"),
)
"""The forms of thoughts whose beginning the text shows, those of Granite 3.2 among them."""
_HEADLESS: Final = (THINK_END, "[/THINK]")
"""Ends of thoughts whose beginning may be in the prompt."""
_LONGEST_BEGIN: Final = max(len(begin) for begin, _ in _BEGUN)


class ThoughtCounter:
    """Counts the tokens of the thought in a text that arrives in pieces of any size.

    It knows the forms of `THOUGHTS`, and Granite's. A form's tags count among the tokens.
    """

    def __init__(self) -> None:
        self._total = 0
        self._closed: int | None = None
        self._head = ""
        self._tail = ""

    def add(self, text: str, tokens: int) -> None:
        """Add a piece of `tokens` tokens."""
        self._total += tokens
        if len(self._head) < _LONGEST_BEGIN:
            self._head = (self._head + text).lstrip()[:_LONGEST_BEGIN]
        recent = self._tail + text if self._tail else text
        begun = len(recent)
        for end in (*_HEADLESS, *(end for _, end in self._form())):
            # An end that is all in the tail was counted before.
            if recent.find(end, max(0, len(self._tail) - len(end) + 1)) >= 0:
                self._closed = self._total
            at = recent.find(end[0], max(0, len(recent) - len(end) + 1))
            begun = min(begun, at) if at >= 0 else begun
        self._tail = recent[begun:]

    @property
    def found(self) -> bool:
        """Whether the text has a thought."""
        return self._closed is not None or bool(self._form())

    @property
    def tokens(self) -> int:
        """The tokens of the thought so far; all of them while it has no end."""
        if self._closed is not None:
            return self._closed
        return self._total if self._form() else 0

    def _form(self) -> tuple[tuple[str, str], ...]:
        """The form with which the text begins, if it does."""
        return tuple(form for form in _BEGUN if self._head.startswith(form[0]))
