"""The tokens of one model as bytes, for its logits and its grammars."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from llguidance import LLTokenizer
from numpy.typing import NDArray
from tokenizers import AddedToken

from weft.core.errors import CapabilityError
from weft.serving.local.tokenizer import LocalTokenizer, TokenizerFiles, read_tokenizer
from weft.serving.text.reasoning_forms import ReasoningStyle, marks_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Vocabulary(LocalTokenizer):
    """The tokens of one model. `size` is the width of its logits, `end_ids` end an answer.

    `trie` is the same vocabulary for the grammar library.
    """

    def __init__(
        self,
        tokenizer: TokenizerFiles | PreTrainedTokenizerBase,
        size: int,
        end_ids: frozenset[int],
        template: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(tokenizer, template)
        self._beginnings: dict[frozenset[int], NDArray[np.bool_]] = {}
        own_end = tokenizer.eos_token_id
        self.size = size
        self.end_ids = end_ids or frozenset([] if own_end is None else [own_end])
        added = tokenizer.added_tokens_decoder
        special = frozenset(token for token, mark in added.items() if mark.special)
        # Logits may be wider than the tokenizer; the ids in between are never text.
        self._spoken = _thought_tags(added, self.reasoning_style())
        self._silent = special.union(range(len(tokenizer), size)) - self._spoken.keys()
        try:
            self.trie = _trie(tokenizer, size, self.end_ids)
        except ValueError as error:
            raise CapabilityError(f"a local model cannot use this tokenizer: {error}") from error

    @classmethod
    def load(
        cls,
        path: Path,
        size: int,
        end_ids: frozenset[int],
        template: Mapping[str, Any] | None = None,
    ) -> Vocabulary:
        """Read the tokenizer of a model folder. Raises: `CapabilityError`, `OSError`."""
        return cls(read_tokenizer(path), size, end_ids, template)

    def bytes_of(self, token: int) -> bytes:
        """The bytes of a token; of special tokens, only the tags of thoughts have any."""
        if token in self._spoken:
            return self._spoken[token]
        return b"" if token in self._silent else self.trie.decode_bytes([token])

    def beginning_with(self, firsts: frozenset[int]) -> NDArray[np.bool_]:
        """[size]: whether a token's first byte is one of `firsts`. Read only."""
        if firsts not in self._beginnings:
            texts = (self.trie.decode_bytes([token]) for token in range(self.size))
            found = np.array([text[:1] != b"" and text[0] in firsts for text in texts])
            self._beginnings[firsts] = found
        return self._beginnings[firsts]


def _thought_tags(
    added: Mapping[int, AddedToken], style: ReasoningStyle | None
) -> dict[int, bytes]:
    """The special tokens that mark a thought of the form `style`."""
    tags = set(marks_of(style))
    return {
        token: mark.content.encode()
        for token, mark in added.items()
        if mark.special and mark.content in tags
    }


def _trie(
    tokenizer: TokenizerFiles | PreTrainedTokenizerBase, size: int, end_ids: frozenset[int]
) -> LLTokenizer:
    """The trie as in `llguidance.hf`, which would import transformers."""
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ValueError("it is not one of the library tokenizers")
    backend = copy(tokenizer.backend_tokenizer)
    backend.no_padding()
    backend.no_truncation()
    return LLTokenizer(backend.to_str(), n_vocab=size, eos_token=sorted(end_ids) or None)
