"""Options of a catalogue. Knows no tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from weft.core.errors import BuildError
from weft.core.suggestion import unknown

ChooserName = Literal["lexical", "model"]
CHOOSERS: Final[dict[ChooserName, str]] = {
    "lexical": "by the words of the request, without a model call",
    "model": "a model opens and closes fields, searches, and chooses",
}
TOKENS: Final = 8_000
"""The limit where none is set."""
LEAST_TOKENS: Final = 200
"""The smallest limit."""


@dataclass(frozen=True, slots=True)
class CatalogueOptions:
    """How an agent chooses the tools that it offers to its model.

    file     declarations with their fields: see `read_catalogue`. None: the agent's own tools,
             grouped by the prefixes of their names
    tokens   the most tokens of the chosen declarations, and of what is shown of the catalogue
    chooser  "lexical" or "model"
    calls    the most operations of a model that chooses

    Raises: `BuildError` for an unknown chooser, and for fewer than 200 tokens or no call.
    """

    file: str | Path | None = None
    tokens: int = TOKENS
    chooser: ChooserName = "lexical"
    calls: int = 12

    def __post_init__(self) -> None:
        if self.chooser not in CHOOSERS:
            raise unknown(BuildError, "chooser", self.chooser, CHOOSERS)
        if self.tokens < LEAST_TOKENS:
            hint = f"give at least {LEAST_TOKENS}"
            raise BuildError(f"a catalogue cannot be shown in {self.tokens} tokens", hint=hint)
        if self.calls < 1:
            raise BuildError("a model chooses with at least one call", hint="give more calls")
