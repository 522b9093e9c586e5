"""Splits an answer's text into reasoning, text and tool calls while it arrives.

A call is emitted whole, at its last bracket. Text that begins like a call and is none, or breaks
off, stays text. Blank space around a call belongs to the call. Every character is read a bounded
number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Literal

from weft.core.ports.model import ReasoningDelta, TextDelta
from weft.serving.text.formats import FoundCall, Piece, ToolFormat
from weft.serving.text.harmony import HarmonyParser
from weft.serving.text.json_scanner import JsonScanner
from weft.serving.text.reasoning_forms import TAGS, ReasoningStyle, ReasoningTags


def partial(text: str, literals: Iterable[str]) -> int:
    """The length of the longest end of `text` that is a proper prefix of one of `literals`."""
    return max((_partial(text, literal) for literal in literals), default=0)


def _partial(text: str, literal: str) -> int:
    longest = min(len(text), len(literal) - 1)
    return next((n for n in range(longest, 0, -1) if literal.startswith(text[-n:])), 0)


_MAX_BLANKS = 64


class ReasoningParser:
    """Separates reasoning in `tags` from an answer's text, which comes in pieces of any size.

    Reasoning is expected only at the beginning. `opened`: the prompt has begun it, so its first tag
    may be missing. Without `opened`, text before a closing tag without a first one is reasoning
    too: it is held back until a tag, or the end; `known` rules that out, where the whole prompt is
    known. Blank space right after a tag belongs to the tag. Reasoning that never ends is reasoning.
    """

    def __init__(
        self, tags: ReasoningTags = TAGS["think"], *, opened: bool = False, known: bool = False
    ) -> None:
        self._tags = tags
        self._any = re.compile("|".join(map(re.escape, (*tags.opens, *tags.closes))))
        self._close = re.compile("|".join(map(re.escape, tags.closes)))
        self._wrap = _AnswerWrap(*tags.wrap) if tags.wrap else None
        self._opened = opened or tags.opened
        self._known = known
        self._state: Literal["start", "undecided", "thinking", "answer"] = "start"
        self._held = ""
        self._undecided: list[str] = []
        self._trim = False

    @property
    def thinking(self) -> bool:
        """Whether the text is inside the reasoning."""
        return self._state == "thinking"

    @property
    def answering(self) -> bool:
        """Whether the text is after the reasoning, or has none."""
        return self._state == "answer"

    @property
    def holding(self) -> bool:
        """Whether some text is held back."""
        return bool(self._held or self._undecided or (self._wrap and self._wrap.held))

    def feed(self, text: str) -> list[TextDelta | ReasoningDelta]:
        """Add `text`; return the pieces that it completes."""
        text, self._held = self._held + text, ""
        found: list[TextDelta | ReasoningDelta] = []
        if self._state == "start":
            text = self._begin(text)
        if self._state == "undecided":
            text = self._wait(text)
        if self._state == "thinking":
            text = self._think(text, found)
        if self._state == "answer":
            text = self._trimmed(text)
            if text := self._wrap.feed(text) if self._wrap else text:
                found.append(TextDelta(text))
        return found

    def end(self) -> list[TextDelta | ReasoningDelta]:
        """Return the text held back: nothing follows."""
        text, self._held = "".join((*self._undecided, self._held)), ""
        self._undecided.clear()
        if self._wrap and not self.thinking:
            text = self._wrap.feed(text) + self._wrap.end()
        if not text:
            return []
        reasoning = self.thinking or (self._opened and self._state == "start")
        return [ReasoningDelta(text) if reasoning else TextDelta(text)]

    def _begin(self, text: str) -> str:
        tag = text.lstrip()
        blanks = len(text) - len(tag)
        opening = next((each for each in self._tags.opens if tag.startswith(each)), None)
        if blanks <= _MAX_BLANKS and opening is not None:
            self._enter("thinking")
            return tag.removeprefix(opening)
        if blanks <= _MAX_BLANKS and any(each.startswith(tag) for each in self._tags.opens):
            self._held = text
            return ""
        if self._opened:
            self._enter("thinking")
        else:
            self._state = "answer" if self._known else "undecided"
        return text

    def _wait(self, text: str) -> str:
        """Hold text back until it is known to be reasoning or the answer; then return all of it."""
        if found := self._any.search(text):
            if found[0] in self._tags.closes:
                self._enter("thinking")
            else:
                self._state = "answer"
            text = "".join((*self._undecided, text))
            self._undecided.clear()
            return text
        keep = len(text) - partial(text, (*self._tags.opens, *self._tags.closes))
        if keep:
            self._undecided.append(text[:keep])
        self._held = text[keep:]
        return ""

    def _think(self, text: str, found: list[TextDelta | ReasoningDelta]) -> str:
        tag = self._close.search(text)
        if tag:
            inside, rest = text[: tag.start()], text[tag.end() :]
        else:
            keep = len(text) - partial(text, self._tags.closes)
            inside, self._held, rest = text[:keep], text[keep:], ""
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


class _AnswerWrap:
    """Leaves out a pair of tags around an answer, which comes in pieces."""

    def __init__(self, opening: str, closing: str) -> None:
        self._opening = opening
        self._closing = closing
        self._begun = False
        self.held = ""

    def feed(self, text: str) -> str:
        text, self.held = self.held + text, ""
        if not self._begun:
            solid = text.lstrip()
            if self._opening.startswith(solid):
                self.held = text
                return ""
            self._begun = True
            text = solid.removeprefix(self._opening) if solid.startswith(self._opening) else text
        at = text.rfind(self._closing[0])
        tail = text[at:] if at >= 0 else ""
        if tail and (self._closing.startswith(tail) or tail.rstrip() == self._closing):
            text, self.held = text[:at], tail
        return text

    def end(self) -> str:
        """The text held back, without the tag."""
        text, self.held = self.held, ""
        return "" if text.strip() in (self._opening, self._closing) else text


Found = list[str | FoundCall]


class ToolCallParser:
    """Finds tool calls in the text of one answer. `known` are the names of the offered tools."""

    def __init__(self, spelling: ToolFormat, known: Collection[str]) -> None:
        self._format = spelling
        self._known = known
        self._step: Callable[[str, Found], str] = self._seek
        self._held = ""
        self._blanks: list[str] = []
        self._at_line = True
        self._opened = ""
        self._head = ""
        self._body: list[str] = []
        self._scanner = JsonScanner()
        self._closing = ""

    @property
    def holding(self) -> bool:
        """Whether some text is held back."""
        return bool(self._held or self._blanks) or self._step in (self._read_head, self._read_body)

    def feed(self, text: str) -> Found:
        """Add `text`; return the text and the calls that it completes, in order."""
        found: Found = []
        while text:
            text = self._step(text, found)
        return found

    def end(self) -> Found:
        """Return the text held back: nothing follows."""
        found: Found = []
        self._give_up(found)
        if self._blanks:
            found.append("".join(self._blanks))
            self._blanks.clear()
        return found

    def _seek(self, text: str, found: Found) -> str:
        text, self._held = self._held + text, ""
        pattern = self._format.opening_at_line if self._at_line else self._format.opening
        match = pattern.search(text)
        if match:
            self._emit(text[: match.start()], found)
            self._opened = match.group()
            self._step = self._read_head
            return text[match.end() :]
        keep = len(text) - partial(text, self._format.literals)
        self._held = text[keep:]
        self._emit(text[:keep], found)
        return ""

    def _read_head(self, text: str, found: Found) -> str:
        for at, char in enumerate(text):
            if self._format.begins_body(self._head, char):
                self._scanner = JsonScanner()
                self._step = self._read_body
                return text[at:]
            self._head += char
            if not self._format.may_be_head(self._head):
                # Another call may begin within the rejected head.
                rest, self._head = self._head + text[at + 1 :], ""
                self._give_up(found)
                return rest
        return ""

    def _read_body(self, text: str, found: Found) -> str:
        size = self._scanner.feed(text)
        self._body.append(text[:size])
        if self._scanner.complete:
            self._finish(found)
        elif self._scanner.broken:
            self._give_up(found)
        return text[size:]

    def _finish(self, found: Found) -> None:
        calls = self._format.read(self._head, "".join(self._body), self._known)
        if calls is None:
            self._give_up(found)
            return
        found += calls
        self._blanks.clear()
        self._forget()
        self._at_line = True
        self._closing = self._format.closing
        self._step = self._pass_over

    def _pass_over(self, text: str, _: Found) -> str:
        """Skip what may follow a call."""
        text, self._held = self._held + text, ""
        while text and (text[0].isspace() or text[0] in self._format.separators):
            text = text.lstrip().lstrip(self._format.separators)
        if self._closing and text.startswith(self._closing):
            size, self._closing = len(self._closing), ""
            return text[size:]
        if self._closing.startswith(text):
            self._held = text
            return ""
        self._step = self._seek
        return text

    def _give_up(self, found: Found) -> None:
        """Emit the text since the opening: it is no call."""
        text = self._opened + self._head + "".join(self._body) + self._held
        self._held = ""
        self._forget()
        self._step = self._seek
        self._emit(text, found)

    def _forget(self) -> None:
        self._opened = self._head = ""
        self._body.clear()

    def _emit(self, text: str, found: Found) -> None:
        """Emit text without the blank space at its end, which may belong to a call."""
        solid = text.rstrip()
        blanks = text[len(solid) :]
        if solid:
            found.append("".join(self._blanks) + solid)
            self._blanks.clear()
            self._at_line = "\n" in blanks
        elif "\n" in blanks:
            self._at_line = True
        if blanks:
            self._blanks.append(blanks)


def answer_and_thought(text: str) -> tuple[str, str]:
    """The answer in `text` and the `<think>` thought before it, whose first tag may be missing."""
    parser = ReasoningParser()
    pieces = [*parser.feed(text), *parser.end()]
    thought = "".join(piece.text for piece in pieces if isinstance(piece, ReasoningDelta))
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)), thought


_BLOCK_CHARS = 4096  # the rest of a block is copied at each step


class Splitter:
    """Splits the text of one answer, fed in pieces of any size; the joined result is the same.

    `reasoning`: the form in which the model marks it; None leaves it in the text. `spelling`: the
    format of tool calls; None leaves them in the text. `known`: the offered tools. Calls inside
    reasoning are ignored.
    """

    def __init__(
        self,
        reasoning: ReasoningStyle | None = None,
        spelling: ToolFormat | None = None,
        known: Collection[str] = (),
    ) -> None:
        self._thinking = _parser(reasoning, known)
        self._tools = ToolCallParser(spelling, known) if spelling else None

    @property
    def thinking(self) -> bool:
        """Whether the text is inside the reasoning."""
        return self._thinking is not None and self._thinking.thinking

    @property
    def holding(self) -> bool:
        """Whether some text is held back."""
        return any(part.holding for part in (self._thinking, self._tools) if part)

    def feed(self, text: str) -> list[Piece]:
        """Add `text`; return the pieces that it completes, in order. No piece is empty."""
        found: list[Piece] = []
        for start in range(0, len(text), _BLOCK_CHARS):
            block = text[start : start + _BLOCK_CHARS]
            found += self._parts(
                self._thinking.feed(block) if self._thinking else [TextDelta(block)]
            )
        return found

    def end(self) -> list[Piece]:
        """Return the text held back: nothing follows."""
        found = self._parts(self._thinking.end() if self._thinking else [])
        return found + (_pieces(self._tools.end()) if self._tools else [])

    def _parts(self, pieces: Iterable[Piece]) -> list[Piece]:
        found: list[Piece] = []
        for piece in pieces:
            if self._tools is None or not isinstance(piece, TextDelta):
                found.append(piece)
            else:
                found += _pieces(self._tools.feed(piece.text))
        return found


def _parser(
    style: ReasoningStyle | None, known: Collection[str]
) -> ReasoningParser | HarmonyParser | None:
    if style is None:
        return None
    return HarmonyParser(known) if style == "harmony" else ReasoningParser(TAGS[style])


def _pieces(found: list[str | FoundCall]) -> list[Piece]:
    return [TextDelta(part) if isinstance(part, str) else part for part in found]
