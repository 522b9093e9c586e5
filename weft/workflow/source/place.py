"""Where something stands in a file, and errors that say so. Knows nothing of what stands there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft.core.errors import SourceError

Path = tuple[str | int, ...]
"""The way from the top of a document to a value in it: keys and indices."""


@dataclass(frozen=True, slots=True)
class Place:
    """A position; both numbers count from 1. `block` marks a literal block scalar (`|`)."""

    line: int = 1
    column: int = 1
    block: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name of its file."""

    file: str
    text: str

    def error(self, message: str, place: Place, hint: str | None = None) -> SourceError:
        """A `SourceError` at `place`; the caller raises it."""
        return SourceError(message, file=self.file, line=place.line, column=place.column, hint=hint)

    def within(self, place: Place, line: int = 1, word: str | None = None) -> Place:
        """The place of `word` on line `line` (from 1) of the scalar that starts at `place`.

        Exact for block scalars and for scalars on one line, else the start of the scalar.
        """
        lines = self.text.splitlines()
        row = place.line + line if place.block else place.line
        if row > len(lines) or (line > 1 and not place.block):
            return place
        text = lines[row - 1]
        first = 0 if place.block else place.column - 1
        found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text[first:]) if word else None
        if found is not None:
            return Place(row, first + found.start() + 1)
        if not place.block:
            return place
        return Place(row, len(text) - len(text.lstrip()) + 1)
