from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.decoding.diffusion.structure.small_vocabularies import END, filled, lexicon, text_of
from weft.decoding.diffusion.structure.compiler import StructureCompiler
from weft.decoding.diffusion.structure.slots import OPEN

WORDS = lexicon()
STRUCTURES = StructureCompiler(WORDS)


class Counting:
    """A grammar: "ab" any number of times, then "!"."""

    def __init__(self) -> None:
        self.text = b""

    @property
    def finished(self) -> bool:
        return self.text.endswith(b"!")

    @property
    def complete(self) -> bool:
        return self.finished

    def _options(self, text: bytes) -> bytes:
        return b"" if text.endswith(b"!") else b"b" if text.endswith(b"a") else b"a!"

    def restrict(self, logits: NDArray[np.float32]) -> None:
        allowed = [byte + 1 for byte in self._options(self.text)]
        kept = logits[allowed].copy()
        logits[:] = -np.inf
        logits[allowed] = kept

    def following(self, tokens: Sequence[int]) -> int:
        text = self.text
        for count, token in enumerate(tokens):
            word = WORDS.written(token)
            if len(word) != 1 or word not in [bytes([b]) for b in self._options(text)]:
                return count
            text += word
        return len(tokens)

    def accept(self, token: int) -> None:
        assert self.following([token]) == 1
        self.text += WORDS.written(token)

    def forced(self) -> list[int]:
        tokens = []
        while len(options := self._options(self.text)) == 1:
            tokens.append(options[0] + 1)
            self.accept(options[0] + 1)
        return tokens


@pytest.mark.parametrize("seed", range(5))
def test_what_is_no_skeleton_is_followed_from_the_left(seed: int) -> None:
    structure = STRUCTURES.start(room=40, schema={"not": {}}, follow=Counting)
    assert structure.kind == "left_to_right"
    assert "'not'" in structure.reason
    filled(structure, WORDS, random.Random(seed))
    text = text_of(structure, WORDS)
    if structure.complete:
        assert text.endswith("!")
    assert not text.replace("ab", "").replace("!", "").strip("a")


def test_a_run_without_a_gap_is_admitted_and_the_rest_is_not() -> None:
    structure = STRUCTURES.start(room=40, follow=Counting)
    a, b, c = (WORDS.spell(char)[0] for char in "abc")
    assert structure.admitted([1, 0, 2, 4], [b, a, a, b]) == [True, True, True, False]
    assert structure.admitted([1], [b]) == [False]
    assert structure.admitted([0, 1], [a, c]) == [True, False]
    assert structure.admitted([0, 1], [a, END]) == [True, False]


def test_what_is_forced_is_written_at_once() -> None:
    structure = STRUCTURES.start(room=40, follow=Counting)
    structure.write([0], WORDS.spell("a"))
    assert [token for token in structure.tokens if token != OPEN] == list(WORDS.spell("ab"))


def test_the_room_ends_it_incomplete() -> None:
    structure = STRUCTURES.start(room=3, follow=Counting)
    for _ in range(2):
        slot = structure.tokens.index(OPEN)
        structure.write([slot], WORDS.spell("a"))
    assert structure.over
    assert not structure.complete
    assert len(structure.tokens) == 3
