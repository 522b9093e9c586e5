"""Finds tool calls in text that arrives in pieces; does not know who is called.

A call comes out whole, as soon as its last bracket has come. What begins like a call and is none,
or breaks off, is text. Blank space before and after a call belongs to the call. Every character is
read a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from weft.serving.text.formats import ToolFormat
from weft.serving.text.found import FoundCall
from weft.serving.text.json_scanner import JsonScanner
from weft.serving.text.partial import partial

Found = list[str | FoundCall]


class ToolText:
    """Feed it the text of one answer. `known` are the names of the tools that can be called."""

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
        """True while some text waits for more of it."""
        return bool(self._held or self._blanks) or self._step in (self._read_head, self._read_body)

    def feed(self, text: str) -> Found:
        """The text and the calls that `text` makes complete, in their order."""
        found: Found = []
        while text:
            text = self._step(text, found)
        return found

    def end(self) -> Found:
        """What was held back, now that nothing follows."""
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
            self._say(text[: match.start()], found)
            self._opened = match.group()
            self._step = self._read_head
            return text[match.end() :]
        keep = len(text) - partial(text, self._format.literals)
        self._held = text[keep:]
        self._say(text[:keep], found)
        return ""

    def _read_head(self, text: str, found: Found) -> str:
        for at, char in enumerate(text):
            if self._format.begins_body(self._head, char):
                self._scanner = JsonScanner()
                self._step = self._read_body
                return text[at:]
            self._head += char
            if not self._format.may_be_head(self._head):
                # Another call may begin within what was no head.
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
        """Leave out what may stand after a call."""
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
        """There is no call: what was read since the opening is text."""
        text = self._opened + self._head + "".join(self._body) + self._held
        self._held = ""
        self._forget()
        self._step = self._seek
        self._say(text, found)

    def _forget(self) -> None:
        self._opened = self._head = ""
        self._body.clear()

    def _say(self, text: str, found: Found) -> None:
        """Pass text on, but for blank space at its end, which may belong to a call."""
        said = text.rstrip()
        blanks = text[len(said) :]
        if said:
            found.append("".join(self._blanks) + said)
            self._blanks.clear()
            self._at_line = "\n" in blanks
        elif "\n" in blanks:
            self._at_line = True
        if blanks:
            self._blanks.append(blanks)
