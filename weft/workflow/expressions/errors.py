"""What is wrong with an expression, with the place inside its text."""

from __future__ import annotations

from weft.core.errors import BuildError


class BadExpression(BuildError):
    """A template does not parse, or uses what templates do not have.

    `line` counts from 1 inside the text; `word` is what stands at the place, if it is known;
    `path` leads to the text inside a nested value.
    """

    def __init__(
        self, message: str, *, line: int = 1, word: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.line = line
        self.word = word
        self.path: tuple[str | int, ...] = ()
