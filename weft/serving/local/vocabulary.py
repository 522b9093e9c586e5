"""Between text and token ids: prompts in, bytes of single tokens out.

Knows the tokenizer and its chat template; knows nothing of requests that are running.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from llguidance.hf import from_tokenizer
from numpy.typing import NDArray
from transformers import AutoTokenizer

from weft.core.errors import CapabilityError, ModelRequestError
from weft.core.values import Message

if TYPE_CHECKING:
    from llguidance import LLTokenizer
    from transformers import PreTrainedTokenizerBase


class Vocabulary:
    """The tokens of one model. `size` is the width of its logits, `end_ids` end an answer.

    `trie` is the same vocabulary as the grammar library wants it.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, size: int, end_ids: frozenset[int]
    ) -> None:
        self._beginnings: dict[frozenset[int], NDArray[np.bool_]] = {}
        own_end = tokenizer.eos_token_id
        self.size = size
        self.end_ids = end_ids or frozenset([] if own_end is None else [own_end])
        self._tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder
        special = {token: mark.content for token, mark in added.items() if mark.special}
        # logits may be wider than the tokenizer; what lies between is never text
        self._silent = frozenset(special) | frozenset(range(len(tokenizer), size))
        marks = sorted(special.values(), key=len, reverse=True)
        self._marks = re.compile("|".join(map(re.escape, marks)) or r"(?!)")
        try:
            self.trie: LLTokenizer = from_tokenizer(
                tokenizer, n_vocab=size, eos_token=sorted(self.end_ids) or None
            )
        except ValueError as error:
            raise CapabilityError(f"a local model cannot use this tokenizer: {error}") from error

    @classmethod
    def load(cls, path: Path, size: int, end_ids: frozenset[int]) -> Vocabulary:
        """Read the tokenizer of a model folder. Raises: `CapabilityError`, `OSError`."""
        return cls(AutoTokenizer.from_pretrained(path, local_files_only=True), size, end_ids)

    def encode_chat(self, messages: Sequence[Message], unfinished: bool = False) -> list[int]:
        """The prompt of a conversation, with the opening of the answer; `unfinished`: that is the
        last message, which is left open.

        A special token that is spelt out in a message is broken up, so that what a tool or a user
        wrote cannot pose as another role.

        Raises: `ModelRequestError` when the model has no chat template or its template refuses.
        """
        if not getattr(self._tokenizer, "chat_template", None):
            raise ModelRequestError(
                "this model has no chat template", hint="give prompt_token_ids instead of messages"
            )
        turns = [self._turn(message) for message in messages]
        begun = turns.pop()["content"] if unfinished else ""
        try:
            text = self._tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True
            )
        except (
            Exception
        ) as error:  # a template is the model author's program: it may raise anything
            raise ModelRequestError(f"the chat template refuses these messages: {error}") from error
        return self.encode(text + begun)

    def encode(self, text: str) -> list[int]:
        """The token ids of `text`; adds none, reads special tokens that are spelt out."""
        ids: list[int] = self._tokenizer.backend_tokenizer.encode(
            text, add_special_tokens=False
        ).ids
        return ids

    def bytes_of(self, token: int) -> bytes:
        """What a token writes; special tokens write nothing."""
        return b"" if token in self._silent else self.trie.decode_bytes([token])

    def beginning_with(self, firsts: frozenset[int]) -> NDArray[np.bool_]:
        """[size]: whether a token's first byte is one of `firsts`. Not to be changed."""
        if firsts not in self._beginnings:
            words = (self.trie.decode_bytes([token]) for token in range(self.size))
            found = np.array([word[:1] != b"" and word[0] in firsts for word in words])
            self._beginnings[firsts] = found
        return self._beginnings[firsts]

    def _turn(self, message: Message) -> dict[str, Any]:
        turn: dict[str, Any] = {
            "role": message.role,
            "content": self._marks.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", message.content),
        }
        if message.tool_call_id is not None:
            turn["tool_call_id"] = message.tool_call_id
        if message.tool_calls:
            turn["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in message.tool_calls
            ]
        return turn
