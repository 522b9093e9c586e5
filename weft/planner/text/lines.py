"""Splits the text of a plan into lines while it arrives.

The line of a call ends at the newline outside of strings and brackets, so that it may span several;
the line of the join ends with its closing parenthesis; any other line is a thought.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from weft.core.errors import PlanError
from weft.planner.plan import PlanLimits


class PlanCursor:
    """A position in `text`, which begins in line `line` of the plan and belongs to `step`."""

    def __init__(self, text: str, *, at: int = 0, line: int = 1, step: int | None = None) -> None:
        self.text = text
        self.at = at
        self._line = line
        self._step = step

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, literal: str) -> bool:
        """Skip `literal` if it is next; returns whether it was."""
        found = self.text.startswith(literal, self.at)
        self.at += len(literal) if found else 0
        return found

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Skip what `pattern` matches here, if anything."""
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def space(self) -> None:
        while self.peek().isspace():
            self.at += 1

    def place(self, at: int | None = None) -> tuple[int, int]:
        """Line and column, from 1, of index `at`, or of the cursor."""
        at = self.at if at is None else at
        return self._line + self.text.count("\n", 0, at), at - self.text.rfind("\n", 0, at)

    def error(self, message: str, hint: str | None = None, at: int | None = None) -> PlanError:
        """An error here, or at index `at`."""
        line, column = self.place(at)
        return PlanError(message, line=line, column=column, step=self._step, hint=hint)

    def ahead(self) -> str:
        """The next characters, quoted for a message."""
        word = self.text[self.at : self.at + 20].split("\n")[0]
        return repr(word) if word else "the end of the line"


PLAIN: Final = r"[^\W\d][\w.\-/]*+"
QUOTED: Final = r'"(?:[^"\\\n]|\\.)*+"'
JOIN: Final = "join"
# What precedes the parenthesis: "3. name", and what models write instead: "- Step 3: name".
_HEAD: Final = re.compile(
    r"[\s\ufeff]*+(?:[-*]\s++)?+(?:\*\*)?+"
    r"(?:(?:[Ss]tep\s++|\$)?+(?P<number>[0-9]++)\s*+[.):=](?:\*\*)?+\s*+"
    rf"(?P<name>{PLAIN}|{QUOTED})|{JOIN})\s*+\("
)
_HEAD_LENGTH: Final = 300
# Models that reason aloud draft plans between these tags, which must not run.
_THINKING, _DECIDED = "<think>", "</think>"
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"

LineKind = Literal["thought", "call", "join"]


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One line: `text` without its newline, `line` its number from 1.

    For a call or the join, `number` (None: it has none) and `name`, as written, precede `at`, where
    the arguments begin.
    """

    kind: LineKind
    text: str
    line: int
    number: int | None = None
    name: str = ""
    at: int = 0


class LineSplitter:
    """Collects pieces of text and yields lines as soon as they are complete."""

    def __init__(self, limits: PlanLimits) -> None:
        self._limits = limits
        self._line = 1
        self._total = 0
        self._thinking = False
        self._begin()

    def cut(self, piece: str) -> Iterator[PlanLine]:
        """The lines that `piece` completes.

        Raises: `PlanError` when a line or the text is too long, or is not Unicode.
        """
        for character in piece:
            self._total += 1
            if self._total > self._limits.text:
                raise self._too_long("the plan", self._limits.text)
            if "\ud800" <= character <= "\udfff":
                raise self.error("the text holds half a character, or is not in UTF-8")
            if self._ends(character):
                yield self._complete()
                self._newlines += character == "\n"
                self._line += self._newlines
                self._begin()
            elif len(self._characters) > self._limits.step:
                raise self._too_long("the line", self._limits.step)

    def rest(self) -> PlanLine | None:
        """The last line, if the text ends without a newline.

        Raises: `PlanError` when it ends inside a string or a bracket.
        """
        if self._open:
            what = "a string" if self._quote else "a bracket"
            hint = 'close it: tool(text="...", list=[1])'
            raise self.error(f"the text ends inside {what}", hint, self._open[-1])
        return self._complete() if self._characters else None

    def error(self, message: str, hint: str | None = None, at: int | None = None) -> PlanError:
        """An error at index `at` of the line, or at the end of the text."""
        cursor = PlanCursor("".join(self._characters), line=self._line, step=self._number)
        return cursor.error(message, hint, len(self._characters) if at is None else at)

    def _begin(self) -> None:
        self._characters: list[str] = []
        self._kind: LineKind | None = "thought" if self._thinking else None  # None: not yet known
        self._number: int | None = None
        self._name = ""
        self._at = 0
        self._newlines = 0
        self._open: list[int] = []  # the indexes of open brackets, and of the string in them
        self._quote = ""
        self._escaped = False
        self._comment = False

    def _complete(self) -> PlanLine:
        kind, text = self._kind or "thought", "".join(self._characters)
        if kind == "thought":
            text = self._outside_of_thinking(text)
        return PlanLine(kind, text, self._line, self._number, self._name, self._at)

    def _outside_of_thinking(self, text: str) -> str:
        """The rest of a line after reasoning that began in it or before."""
        if not self._thinking and not text.lstrip().startswith(_THINKING):
            return text
        _, decided, rest = text.partition(_DECIDED)
        self._thinking = not decided
        return rest

    def _ends(self, character: str) -> bool:
        """Add one character; whether it ends the line. A newline that does is dropped."""
        if character == "\n" and not self._open:
            return True
        self._characters.append(character)
        if character == "\n":
            self._newlines += 1
        if self._kind is None:
            self._check_head(character)
            return False
        return self._kind != "thought" and self._call_ends(character)

    def _check_head(self, character: str) -> None:
        if len(self._characters) > _HEAD_LENGTH:
            self._kind = "thought"
        elif character == "(" and (head := _HEAD.fullmatch("".join(self._characters))):
            self._name = head["name"] or JOIN
            self._number = int(head["number"]) if head["number"] else None
            self._kind = JOIN if self._name == JOIN else "call"
            self._at = len(self._characters)
            self._open.append(self._at - 1)

    def _call_ends(self, character: str) -> bool:
        if self._quote:
            self._inside_string(character)
        elif self._comment:
            pass
        elif character in "\"'":
            # An apostrophe inside a word opens nothing: unquoted text is an error, not swallowed.
            if character == '"' or not self._characters[-2].isalnum():
                self._quote = character
                self._open.append(len(self._characters) - 1)
        elif character in _OPENING:
            self._open.append(len(self._characters) - 1)
        elif character in _CLOSING and self._open:
            self._open.pop()
            return self._kind == JOIN and not self._open
        elif character == "#" and not self._open:
            self._comment = True
        return False

    def _inside_string(self, character: str) -> None:
        if self._escaped:
            self._escaped = False
        elif character == "\\":
            self._escaped = True
        elif character == self._quote:
            self._quote = ""
            self._open.pop()

    def _too_long(self, what: str, most: int) -> PlanError:
        hint = "close every string and bracket, and keep long texts out of a plan"
        at = self._open[-1] if self._open else None
        return self.error(f"{what} has more than {most:,} characters", hint, at)
