"""A document whose keys stand and whose values are open, as a skeleton lays it out: to be learnt.

A value of unknown length has more slots than it needs, and the model is to say where it ends. See
`weft.decoding.diffusion.structure`, which the canvases here are alike to.
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
"""The tokens of a text alone."""
_LATER: Final = -1
"""Stands for a token that follows, which is known at the end only."""


@dataclass(frozen=True, slots=True)
class FormLiteral:
    """Stands there from the beginning."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FormBlank:
    """A value. While it is open it may have slots for more: there, `after` says that it is over."""

    tokens: tuple[int, ...]
    after: int


@dataclass(frozen=True, slots=True)
class FormChoice:
    """One slot, `goal`, says what comes next. `tokens`: what stands there once it is decided. While
    it is open, the text goes on with piece number `until`.
    """

    tokens: tuple[int, ...]
    goal: int
    until: int


FormPiece: TypeAlias = "FormLiteral | FormBlank | FormChoice"


class FormBuilder:
    """Pieces as they come, neighbouring text as one literal."""

    def __init__(self, spell: Spell) -> None:
        self._spell = spell
        self._text = ""
        self._pieces: list[FormPiece] = []

    def text(self, text: str) -> None:
        """What stands there."""
        self._text += text

    def value(self, value: Value, schema: JsonSchema) -> None:
        """What is open, as a skeleton lays it out that knows `schema` of it."""
        if isinstance(value, list):
            self._list(value)
        elif isinstance(value, str):
            self.text('"')
            self._one(dump_json(value)[1:-1], schema)
            self.text('"')
        else:
            self._one(dump_json(value), schema)

    def finished(self) -> list[FormPiece]:
        """All pieces. A blank, or a fork that is nothing, is over where what follows it begins."""
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
        """Of strings, one at least: behind each, one slot says whether another one comes."""
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
"""An open slot shows it, a decided one asks for it."""


class DocumentForm:
    """`pieces` in their order; `tokens` when all is decided."""

    def __init__(self, pieces: Sequence[FormPiece]) -> None:
        self.pieces = tuple(pieces)
        self.tokens = tuple(token for piece in pieces for token in piece.tokens)

    @classmethod
    def of(
        cls, fields: Mapping[str, Value], schemas: Mapping[str, JsonSchema], spell: Spell
    ) -> DocumentForm:
        """A document with its keys in their order, and what the schema of each says."""
        draft = FormBuilder(spell)
        for number, (key, value) in enumerate(fields.items()):
            draft.text(f"{', ' if number else '{'}{dump_json(key)}: ")
            draft.value(value, schemas[key])
        draft.text("}")
        return cls(draft.finished())

    def opened(
        self, begin: int, width: int, rng: np.random.Generator, level: float
    ) -> OpenFormSlots:
        """At most `width` slots from token number `begin` on, all of which before are decided.

        level   the share of tokens that are not decided yet
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
        """What each slot shows and what it asks for, one of which is `_NOTHING`."""
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
    """`ids`: what slots show; `goals`: what they ask for. One of the two is -1."""

    ids: list[int]
    goals: list[int]


def copy_form(
    form: DocumentForm,
    tokens: Ids,
    answer: int,
    laying: LayoutBuilder,
    rng: np.random.Generator,
    level: float | None = None,
) -> NoisyCopy:
    """The blocks of a text whose tokens from `answer` on are those of `form`, each at a moment of
    its own: everything before it is decided, nothing after it is there.

    level   of all blocks; else one for each, a third of them with everything open
    """
    first = laying.first(answer)
    slots, ids = list(range(first, answer)), tokens[first:answer].tolist()
    goals = [_NOTHING] * len(ids)
    for start in range(first, answer + len(form.tokens), laying.block):
        drawn = 1.0 if rng.integers(3) == 0 else float(rng.uniform())
        begin, stop = max(start, answer), start + laying.block
        share = drawn if level is None else level
        opened = form.opened(begin - answer, stop - begin, rng, share)
        slots += range(begin, begin + len(opened.ids))
        ids += opened.ids
        goals += opened.goals
    wanted = np.array(goals, dtype=np.int64)
    return NoisyCopy(
        np.array(slots, dtype=np.int64),
        np.array([laying.mask if token == _NOTHING else token for token in ids], dtype=np.int64),
        wanted != _NOTHING,
        wanted,
        np.ones(len(wanted)),
    )


def _spare(piece: FormBlank, rng: np.random.Generator) -> int:
    """Slots that a value has beyond its tokens."""
    most = max(0, _ROOM - len(piece.tokens))
    match int(rng.integers(4)):
        case 0:
            return 0
        case 1:
            return int(rng.integers(most + 1))
        case _:
            return most
