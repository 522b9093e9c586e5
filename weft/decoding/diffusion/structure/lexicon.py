"""The tokens of one model as bytes: what structures are checked against, and spelt with.

Knows no grammar. Tokens that write nothing, and those that are never written, are not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import ModelRequestError
from weft.decoding.diffusion.structure.refused import NotASkeleton

_LONGEST_BYTES: Final = 16
_KEPT: Final = 4096


class Words(Protocol):
    """A vocabulary, as a tokenizer tells it."""

    @property
    def size(self) -> int:
        """The width of the model's logits."""

    def bytes_of(self, token: int) -> bytes:
        """What a token writes; special tokens write nothing."""

    def encode_plain(self, text: str) -> Sequence[int]:
        """The tokens of a text, none of them special. Raises: `ModelRequestError`."""


class Lexicon:
    """Made once for each model: it reads every token.

    bytes     [tokens, longest] padded with 0
    lengths   [tokens]; 0: never part of a value, as is a token of more than 16 bytes
    """

    def __init__(
        self,
        words: Words,
        banned: frozenset[int] = frozenset(),
        end_ids: frozenset[int] = frozenset(),
    ) -> None:
        self.size = words.size
        self.end_ids = end_ids
        self._words = words
        silent = banned | end_ids
        written = [b"" if n in silent else words.bytes_of(n) for n in range(words.size)]
        self._written = written
        kept = [word if len(word) <= _LONGEST_BYTES else b"" for word in written]
        self.lengths = np.array([len(word) for word in kept], dtype=np.int64)
        width = int(self.lengths.max(initial=1))
        joined = b"".join(word.ljust(width, b"\0") for word in kept)
        self.bytes: NDArray[np.uint8] = np.frombuffer(joined, dtype=np.uint8).reshape(-1, width)
        self._by_bytes: dict[bytes, int] = {}
        for token, word in enumerate(written):
            self._by_bytes.setdefault(word, token)
        self._longest = max(map(len, written), default=1)
        self._spelt: dict[str, tuple[int, ...]] = {}

    def written(self, token: int) -> bytes:
        """What a token writes."""
        return self._written[token]

    def beginning_with(self, first: int) -> NDArray[np.bool_]:
        """[size]: tokens whose first byte is `first`."""
        found: NDArray[np.bool_] = (self.bytes[:, 0] == first) & (self.lengths > 0)
        return found

    def spell(self, text: str) -> tuple[int, ...]:
        """Tokens that write exactly `text`: the tokenizer's own where it is faithful.

        Raises: `NotASkeleton` when no tokens do.
        """
        found = self._spelt.get(text)
        if found is None:
            found = self._own(text) or self._longest_first(text)
            if len(self._spelt) >= _KEPT:
                self._spelt.clear()
            self._spelt[text] = found
        return found

    def _own(self, text: str) -> tuple[int, ...]:
        """Empty where the tokenizer adds, drops or changes something, or uses a silent token."""
        try:
            tokens = tuple(self._words.encode_plain(text))
        except ModelRequestError:
            return ()
        return tokens if b"".join(map(self.written, tokens)) == text.encode() else ()

    def _longest_first(self, text: str) -> tuple[int, ...]:
        left, tokens = text.encode(), []
        while left:
            for length in range(min(self._longest, len(left)), 0, -1):
                token = self._by_bytes.get(left[:length])
                if token is not None:
                    break
            else:
                raise NotASkeleton(f"no tokens of the model spell {text[:40]!r}")
            tokens.append(token)
            left = left[length:]
        return tuple(tokens)
