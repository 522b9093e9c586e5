"""A document with fixed keys and open values, as a skeleton lays it out, for training.

A value of unknown length has spare slots, and the model predicts where it ends. The canvases follow
`weft.decoding.diffusion.structure`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from weft.core.values import JsonSchema
from weft.decoding.diffusion.structure.keywords import dump_json
from weft.decoding.diffusion.structure.skeleton import StructureOptions
from weft.training.diffusion.block.layout import Ids, LayoutBuilder, NoisyCopy
from weft.training.diffusion.block.value_generators import Value

Spell: TypeAlias = Callable[[str], Sequence[int]]
"""Tokenizes a text without context."""
_LATER: Final = -1
"""Stands for the first token of the next piece, which is set at the end."""


@dataclass(frozen=True, slots=True)
class FormLiteral:
    """Fixed text."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FormBlank:
    """A value. `after`: the token of its spare slots, which ends it."""

    tokens: tuple[int, ...]
    after: int


@dataclass(frozen=True, slots=True)
class FormChoice:
    """A slot whose token, `goal`, decides what follows. `tokens`: its text once decided. While it
    is open, the text continues with piece number `until`.
    """

    tokens: tuple[int, ...]
    goal: int
    until: int


FormPiece: TypeAlias = "FormLiteral | FormBlank | FormChoice"


class FormBuilder:
    """Collects pieces, with neighbouring texts as one literal."""

    def __init__(self, spell: Spell) -> None:
        self._spell = spell
        self._text = ""
        self._pieces: list[FormPiece] = []

    def text(self, text: str) -> None:
        """Append fixed text."""
        self._text += text

    def value(self, value: Value, schema: JsonSchema) -> None:
        """Append a value, open as in a skeleton for `schema`."""
        if isinstance(value, list):
            self._list(value)
        elif isinstance(value, str):
            self.text('"')
            self._one(dump_json(value)[1:-1], schema)
            self.text('"')
        else:
            self._one(dump_json(value), schema)

    def finished(self) -> list[FormPiece]:
        """All pieces. Blanks and empty choices end with the first token of the next piece."""
        self._flush()
        out: list[FormPiece] = []
        for piece in reversed(self._pieces):
            match piece:
                case FormBlank(tokens=tokens):
                    out.append(FormBlank(tokens, out[-1].tokens[0]))
                case FormChoice(tokens=(), until=until):
                    out.append(FormChoice((), out[-1].tokens[0], until))
                case _:
                    out.append(piece)
        return out[::-1]

    def _one(self, text: str, schema: JsonSchema) -> None:
        tokens = tuple(self._spell(text))
        if "enum" not in schema and schema.get("type") != "boolean":
            self._put(FormBlank(tokens, _LATER))
            return
        self._flush()
        self._put(FormChoice(tokens, tokens[0], len(self._pieces) + 1))

    def _list(self, items: list[str]) -> None:
        """One or more strings: after each, one slot decides whether another follows."""
        self.text("[")
        self._flush()
        quote, comma, opening = (tuple(self._spell(text)) for text in ('"', ",", ' "'))
        end = len(self._pieces) + 4 * len(items)
        for number, item in enumerate(items):
            begins = comma if number else quote
            self._put(FormChoice(begins, begins[0], end))
            if number:
                self._put(FormLiteral(opening))
            self._put(FormBlank(tuple(self._spell(dump_json(item)[1:-1])), _LATER))
            self._put(FormLiteral(quote))
        self._put(FormChoice((), _LATER, end))
        self.text("]")

    def _put(self, piece: FormPiece) -> None:
        self._flush()
        self._pieces.append(piece)

    def _flush(self) -> None:
        if self._text:
            self._pieces.append(FormLiteral(tuple(self._spell(self._text))))
            self._text = ""


_ROOM: Final = StructureOptions().open_tokens
_NOTHING: Final = -1
"""The token of an open slot, and the goal of a decided one."""


class DocumentForm:
    """A document as `pieces` in order; `tokens` when all is decided."""

    def __init__(self, pieces: Sequence[FormPiece]) -> None:
        self.pieces = tuple(pieces)
        self.tokens = tuple(token for piece in pieces for token in piece.tokens)

    @classmethod
    def of(
        cls, fields: Mapping[str, Value], schemas: Mapping[str, JsonSchema], spell: Spell
    ) -> DocumentForm:
        """A document with its keys in order, and the schemas of their values."""
        draft = FormBuilder(spell)
        for number, (key, value) in enumerate(fields.items()):
            draft.text(f"{', ' if number else '{'}{dump_json(key)}: ")
            draft.value(value, schemas[key])
        draft.text("}")
        return cls(draft.finished())

    def opened(
        self, begin: int, width: int, rng: np.random.Generator, level: float
    ) -> OpenFormSlots:
        """At most `width` slots from token number `begin` on, after decided ones.

        level   the share of undecided tokens
        """
        out = OpenFormSlots([], [])
        for token, goal in self._slots(begin, rng, level):
            if len(out.ids) == width:
                break
            out.ids.append(token)
            out.goals.append(goal)
        return out

    def _slots(
        self, begin: int, rng: np.random.Generator, level: float
    ) -> Iterator[tuple[int, int]]:
        """The token and the goal of each slot, one of which is `_NOTHING`."""
        at = number = 0
        while number < len(self.pieces):
            piece = self.pieces[number]
            left = piece.tokens[max(0, begin - at) :]
            at += len(piece.tokens)
            number += 1
            if at < begin or (at == begin and not isinstance(piece, FormBlank)):
                continue
            hidden = rng.uniform(size=len(left)) < level
            match piece:
                case FormLiteral():
                    yield from ((token, _NOTHING) for token in left)
                case FormChoice() if left == piece.tokens and rng.uniform() < level:
                    yield _NOTHING, piece.goal
                    at += sum(len(one.tokens) for one in self.pieces[number : piece.until])
                    number = piece.until
                case FormChoice():
                    yield from ((token, _NOTHING) for token in left)
                case FormBlank():
                    for token, open_ in zip(left, hidden, strict=True):
                        yield (_NOTHING, token) if open_ else (token, _NOTHING)
                    if hidden.any() or rng.uniform() < level:
                        yield from [(_NOTHING, piece.after)] * _spare(piece, rng)


@dataclass(frozen=True, slots=True)
class OpenFormSlots:
    """`ids`: tokens of slots; `goals`: what they should predict. One of the two is -1."""

    ids: list[int]
    goals: list[int]


def copy_form(
    form: DocumentForm,
    tokens: Ids,
    answer: int,
    builder: LayoutBuilder,
    rng: np.random.Generator,
    level: float | None = None,
) -> NoisyCopy:
    """Noisy blocks of a text whose tokens from `answer` on are those of `form`. In each of them all
    earlier blocks are decided, and later ones are missing.

    level   of all blocks; else one for each, a third of them fully open
    """
    first = builder.first(answer)
    slots, ids = list(range(first, answer)), tokens[first:answer].tolist()
    goals = [_NOTHING] * len(ids)
    for start in range(first, answer + len(form.tokens), builder.block):
        random_level = 1.0 if rng.integers(3) == 0 else float(rng.uniform())
        begin, stop = max(start, answer), start + builder.block
        share = random_level if level is None else level
        opened = form.opened(begin - answer, stop - begin, rng, share)
        slots += range(begin, begin + len(opened.ids))
        ids += opened.ids
        goals += opened.goals
    wanted = np.array(goals, dtype=np.int64)
    return NoisyCopy(
        np.array(slots, dtype=np.int64),
        np.array([builder.mask if token == _NOTHING else token for token in ids], dtype=np.int64),
        wanted != _NOTHING,
        wanted,
        np.ones(len(wanted)),
    )


def _spare(piece: FormBlank, rng: np.random.Generator) -> int:
    """Number of spare slots of a value."""
    most = max(0, _ROOM - len(piece.tokens))
    match int(rng.integers(4)):
        case 0:
            return 0
        case 1:
            return int(rng.integers(most + 1))
        case _:
            return most
