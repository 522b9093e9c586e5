"""What a form is made of: text that stands, values that are open, and choices.

Knows the fields of one document and how they are spelt; knows no slots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.core.values import JsonSchema
from weft.decoding.diffusion.structure.keywords import spelled
from weft.decoding.diffusion.train.block.words import Value

Spell: TypeAlias = Callable[[str], Sequence[int]]
"""The tokens of a text alone."""
_LATER: Final = -1
"""Stands for a token that follows, which is known at the end only."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Stands there from the beginning."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Blank:
    """A value. While it is open it may have slots for more: there, `after` says that it is over."""

    tokens: tuple[int, ...]
    after: int


@dataclass(frozen=True, slots=True)
class Fork:
    """One slot, `goal`, says what comes next. `tokens`: what stands there once it is decided. While
    it is open, the text goes on with piece number `until`.
    """

    tokens: tuple[int, ...]
    goal: int
    until: int


Piece: TypeAlias = "Literal | Blank | Fork"


class Draft:
    """Pieces as they come, neighbouring text as one literal."""

    def __init__(self, spell: Spell) -> None:
        self._spell = spell
        self._text = ""
        self._pieces: list[Piece] = []

    def text(self, text: str) -> None:
        """What stands there."""
        self._text += text

    def value(self, value: Value, schema: JsonSchema) -> None:
        """What is open, as a skeleton lays it out that knows `schema` of it."""
        if isinstance(value, list):
            self._list(value)
        elif isinstance(value, str):
            self.text('"')
            self._one(spelled(value)[1:-1], schema)
            self.text('"')
        else:
            self._one(spelled(value), schema)

    def finished(self) -> list[Piece]:
        """All pieces. A blank, or a fork that is nothing, is over where what follows it begins."""
        self._flush()
        out: list[Piece] = []
        for piece in reversed(self._pieces):
            match piece:
                case Blank(tokens=tokens):
                    out.append(Blank(tokens, out[-1].tokens[0]))
                case Fork(tokens=(), until=until):
                    out.append(Fork((), out[-1].tokens[0], until))
                case _:
                    out.append(piece)
        return out[::-1]

    def _one(self, text: str, schema: JsonSchema) -> None:
        tokens = tuple(self._spell(text))
        if "enum" not in schema and schema.get("type") != "boolean":
            self._put(Blank(tokens, _LATER))
            return
        self._flush()
        self._put(Fork(tokens, tokens[0], len(self._pieces) + 1))

    def _list(self, items: list[str]) -> None:
        """Of strings, one at least: behind each, one slot says whether another one comes."""
        self.text("[")
        self._flush()
        quote, comma, opening = (tuple(self._spell(text)) for text in ('"', ",", ' "'))
        end = len(self._pieces) + 4 * len(items)
        for number, item in enumerate(items):
            begins = comma if number else quote
            self._put(Fork(begins, begins[0], end))
            if number:
                self._put(Literal(opening))
            self._put(Blank(tuple(self._spell(spelled(item)[1:-1])), _LATER))
            self._put(Literal(quote))
        self._put(Fork((), _LATER, end))
        self.text("]")

    def _put(self, piece: Piece) -> None:
        self._flush()
        self._pieces.append(piece)

    def _flush(self) -> None:
        if self._text:
            self._pieces.append(Literal(tuple(self._spell(self._text))))
            self._text = ""
