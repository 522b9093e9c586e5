"""Small vocabularies for structures, and a hand that fills them in any order."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from weft.decoding.diffusion.structure.languages.token_automaton import TokenVocabulary
from weft.decoding.diffusion.structure.slots import OPEN
from weft.decoding.diffusion.structure.structure import Structure

END = 0


class Letters:
    """Every byte is a token, and so are `words`; token 0 ends a text."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        self._words = [b"", *(bytes([n]) for n in range(256)), *(w.encode() for w in words)]
        self.size = len(self._words)

    def bytes_of(self, token: int) -> bytes:
        return self._words[token]

    def encode_plain(self, text: str) -> Sequence[int]:
        """The longest words first."""
        left, tokens = text.encode(), []
        while left:
            fits = [n for n, word in enumerate(self._words) if word and left.startswith(word)]
            tokens.append(max(fits, key=lambda n: len(self._words[n])))
            left = left[len(self._words[tokens[-1]]) :]
        return tokens


JSON_WORDS = ['{"', '":', ' "', '",', "true", "false", "null", "er", "the", '"}', "12", ", "]


def lexicon(words: Sequence[str] = JSON_WORDS) -> TokenVocabulary:
    return TokenVocabulary(Letters(words), end_ids=frozenset([END]))


def text_of(structure: Structure, lexicon: TokenVocabulary) -> str:
    return b"".join(map(lexicon.written, structure.tokens)).decode()


def filled(structure: Structure, lexicon: TokenVocabulary, chance: random.Random) -> int:
    """Fill it with whatever is allowed, any number of slots at a time; the steps it took.

    The first of what is proposed is always admitted, and every open slot can hold something.
    """
    steps = 0
    while not structure.over:
        steps += 1
        slots = [slot for slot, token in enumerate(structure.tokens) if token == OPEN]
        if structure.kind == "left_to_right":
            slots = slots[: chance.randint(1, 3)]
        else:
            slots = chance.sample(slots, chance.randint(1, len(slots)))
        tokens = []
        for slot in slots:
            noise = np.random.default_rng(chance.getrandbits(32)).normal(0, 3, lexicon.size)
            allowed = structure.restrict(slot, noise.astype(np.float32))
            assert np.isfinite(allowed).any()
            tokens.append(int(allowed.argmax()))
        fine = structure.admitted(slots, tokens)
        assert fine[0]
        kept = [(s, t) for s, t, f in zip(slots, tokens, fine, strict=True) if f]
        structure.write([slot for slot, _ in kept], [token for _, token in kept])
    return steps
