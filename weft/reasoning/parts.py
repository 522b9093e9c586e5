"""What a runtime writes into a thread's context: tags, its own words, and what others said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag of a protocol, named by how it is written: a special token where the model has it."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """Words of the protocol itself, trusted."""

    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """Words of a user, a document or a model: written so that no tag can come of them.

    At most `max_tokens` of them, the last ones.
    """

    text: str
    max_tokens: int | None = None


Part: TypeAlias = Tag | Text | Said | tuple[int, ...]
"""A tuple of ints is token ids, exactly as they were generated."""

Parts: TypeAlias = tuple[Part, ...]
Piece: TypeAlias = Tag | str
"""What a model wrote, taken apart: the protocol's tags, and the text between them."""


def spelt(pieces: tuple[Piece, ...]) -> str:
    """The text of `pieces`, tags spelt out."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)
