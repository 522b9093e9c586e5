"""A document whose keys stand and whose values are open, as a skeleton lays it out: to be learnt.

A value of unknown length has more slots than it needs, and the model is to say where it ends. See
`weft.decoding.diffusion.structure`, which the canvases here are alike to. Knows no model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.core.values import JsonSchema
from weft.decoding.diffusion.structure.keywords import spelled
from weft.decoding.diffusion.structure.options import StructureOptions
from weft.decoding.diffusion.train.block.layout import Copy, Laying
from weft.decoding.diffusion.train.block.noise import Ids
from weft.decoding.diffusion.train.block.pieces import Blank, Draft, Fork, Literal, Piece, Spell
from weft.decoding.diffusion.train.block.words import Value

_ROOM: Final = StructureOptions().open_tokens
_NOTHING: Final = -1
"""An open slot shows it, a decided one asks for it."""


class Form:
    """`pieces` in their order; `tokens` when all is decided."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = tuple(pieces)
        self.tokens = tuple(token for piece in pieces for token in piece.tokens)

    @classmethod
    def of(
        cls, fields: Mapping[str, Value], schemas: Mapping[str, JsonSchema], spell: Spell
    ) -> Form:
        """A document with its keys in their order, and what the schema of each says."""
        draft = Draft(spell)
        for number, (key, value) in enumerate(fields.items()):
            draft.text(f"{', ' if number else '{'}{spelled(key)}: ")
            draft.value(value, schemas[key])
        draft.text("}")
        return cls(draft.finished())

    def opened(self, begin: int, width: int, chance: np.random.Generator, level: float) -> Opened:
        """At most `width` slots from token number `begin` on, all of which before are decided.

        level   the share of tokens that are not decided yet
        """
        out = Opened([], [])
        for token, goal in self._slots(begin, chance, level):
            if len(out.ids) == width:
                break
            out.ids.append(token)
            out.goals.append(goal)
        return out

    def _slots(
        self, begin: int, chance: np.random.Generator, level: float
    ) -> Iterator[tuple[int, int]]:
        """What each slot shows and what it asks for, one of which is `_NOTHING`."""
        at = number = 0
        while number < len(self.pieces):
            piece = self.pieces[number]
            left = piece.tokens[max(0, begin - at) :]
            at += len(piece.tokens)
            number += 1
            if at < begin or (at == begin and not isinstance(piece, Blank)):
                continue
            hidden = chance.uniform(size=len(left)) < level
            match piece:
                case Literal():
                    yield from ((token, _NOTHING) for token in left)
                case Fork() if left == piece.tokens and chance.uniform() < level:
                    yield _NOTHING, piece.goal
                    at += sum(len(one.tokens) for one in self.pieces[number : piece.until])
                    number = piece.until
                case Fork():
                    yield from ((token, _NOTHING) for token in left)
                case Blank():
                    for token, open_ in zip(left, hidden, strict=True):
                        yield (_NOTHING, token) if open_ else (token, _NOTHING)
                    if hidden.any() or chance.uniform() < level:
                        yield from [(_NOTHING, piece.after)] * _spare(piece, chance)


@dataclass(frozen=True, slots=True)
class Opened:
    """`ids`: what slots show; `goals`: what they ask for. One of the two is -1."""

    ids: list[int]
    goals: list[int]


def copied(
    form: Form,
    tokens: Ids,
    answer: int,
    laying: Laying,
    chance: np.random.Generator,
    level: float | None = None,
) -> Copy:
    """The blocks of a text whose tokens from `answer` on are those of `form`, each at a moment of
    its own: everything before it is decided, nothing after it is there.

    level   of all blocks; else one for each, a third of them with everything open
    """
    first = laying.first(answer)
    slots, ids = list(range(first, answer)), tokens[first:answer].tolist()
    goals = [_NOTHING] * len(ids)
    for start in range(first, answer + len(form.tokens), laying.block):
        drawn = 1.0 if chance.integers(3) == 0 else float(chance.uniform())
        begin, stop = max(start, answer), start + laying.block
        share = drawn if level is None else level
        opened = form.opened(begin - answer, stop - begin, chance, share)
        slots += range(begin, begin + len(opened.ids))
        ids += opened.ids
        goals += opened.goals
    wanted = np.array(goals, dtype=np.int64)
    return Copy(
        np.array(slots, dtype=np.int64),
        np.array([laying.mask if token == _NOTHING else token for token in ids], dtype=np.int64),
        wanted != _NOTHING,
        wanted,
        np.ones(len(wanted)),
    )


def _spare(piece: Blank, chance: np.random.Generator) -> int:
    """Slots that a value has beyond its tokens."""
    most = max(0, _ROOM - len(piece.tokens))
    match int(chance.integers(4)):
        case 0:
            return 0
        case 1:
            return int(chance.integers(most + 1))
        case _:
            return most
