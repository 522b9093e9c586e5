"""A place in one line of a plan, and errors that name it. Knows no syntax."""

from __future__ import annotations

import re

from weft.core.errors import PlanError


class Cursor:
    """Goes through `text`, which begins in line `line` of the plan and belongs to `step`."""

    def __init__(self, text: str, *, at: int = 0, line: int = 1, step: int | None = None) -> None:
        self.text = text
        self.at = at
        self._line = line
        self._step = step

    def peek(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def take(self, literal: str) -> bool:
        """Go past `literal` if it is next."""
        found = self.text.startswith(literal, self.at)
        self.at += len(literal) if found else 0
        return found

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go past what `pattern` finds here, if anything."""
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def space(self) -> None:
        """Go past blanks and newlines."""
        while self.peek().isspace():
            self.at += 1

    def place(self, at: int | None = None) -> tuple[int, int]:
        """Line and column, from 1, of index `at`, or of where the cursor is."""
        at = self.at if at is None else at
        return self._line + self.text.count("\n", 0, at), at - self.text.rfind("\n", 0, at)

    def error(self, message: str, hint: str | None = None, at: int | None = None) -> PlanError:
        """The error that something is wrong here, or at index `at`."""
        line, column = self.place(at)
        return PlanError(message, line=line, column=column, step=self._step, hint=hint)

    def ahead(self) -> str:
        """What comes next, quoted for a message."""
        word = self.text[self.at : self.at + 20].split("\n")[0]
        return repr(word) if word else "the end of the line"
