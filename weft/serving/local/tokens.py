"""Between text and token ids, by a model's own tokenizer and chat template; loads no weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tokenizers.models import BPE

from weft.core.errors import ContextLengthExceeded, ModelRequestError
from weft.core.values import Message
from weft.serving.local.tokenizer_files import TokenizerFiles, read_tokenizer
from weft.serving.text import PlainText, Tokenized, only_blanks

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_WORDS_LOOKED_AT: Final = 1000
_LONGEST_WORD: Final = 40
TOO_LONG_HINT: Final = "shorten the prompt or split it over several calls"


class Tokens:
    """What `Tokenizing` needs of one model. Any thread may use it."""

    def __init__(self, tokenizer: TokenizerFiles | PreTrainedTokenizerBase) -> None:
        added = tokenizer.added_tokens_decoder
        marks = sorted((mark.content for mark in added.values() if mark.special), key=len)
        self._tokenizer = tokenizer
        self._added = {
            token: mark.content
            for token, mark in added.items()
            if mark.special or not only_blanks(mark.content)
        }
        self._ids = {spelling: token for token, spelling in self._added.items()}
        self._marks = re.compile("|".join(map(re.escape, reversed(marks))) or r"(?!)")
        self._unknown = _unknown(tokenizer)
        self._plain = PlainText()
        self._most_chars = _most_chars(tokenizer)

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Read the tokenizer of a model folder. Raises: `OSError`, `ValueError`."""
        return cls(read_tokenizer(path))

    def encode(self, text: str) -> list[int]:
        """The token ids of `text`; adds none, reads special tokens that are spelt out.

        Raises: `ModelRequestError` for a text that the tokenizer has no tokens for.
        """
        try:
            # Other than `encode`, this lets other threads run meanwhile.
            found = self._tokenizer.backend_tokenizer.encode_batch_fast(
                [text], add_special_tokens=False
            )[0]
        except Exception as error:  # the library raises nothing more exact
            reason = self._unread(text) or str(error)
            raise ModelRequestError(
                f"the tokenizer cannot read this text: {reason}", hint="it may know no such words"
            ) from error
        ids: list[int] = found.ids
        return ids

    def _unread(self, text: str) -> str:
        """The first word that has no tokens; empty where none of the first ones is to blame."""
        words = self._marks.sub(" ", text).split(maxsplit=_WORDS_LOOKED_AT)
        for word in words[:_WORDS_LOOKED_AT]:
            try:
                self._tokenizer.backend_tokenizer.encode_batch_fast(
                    [word], add_special_tokens=False
                )
            except Exception:  # noqa: BLE001 - the library raises nothing more exact
                return f"no tokens for {word[:_LONGEST_WORD]!r}"
        return ""

    def encode_plain(self, text: str) -> list[int]:
        """The token ids of `text`, of which none is a special or an added token.

        Raises: `ModelRequestError` for a character that only such a token spells.
        """
        return list(self._plain.encode(text, self._tokenized))

    def encode_chat(
        self,
        messages: Sequence[Message],
        unfinished: bool = False,
        most_tokens: int | None = None,
    ) -> list[int]:
        """The prompt of a conversation, with the opening of the answer; `unfinished`: that is the
        last message, which is left open. `most_tokens`: a text that is certainly longer is refused
        without tokenizing it.

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
        text += begun
        if most_tokens is not None:
            self._check_length(text, most_tokens)
        return self.encode(text)

    def _check_length(self, text: str, most_tokens: int) -> None:
        """Raises: `ContextLengthExceeded` for more characters than so many tokens can spell."""
        if self._most_chars is not None and len(text) > self._most_chars * most_tokens:
            raise ContextLengthExceeded(
                f"the prompt has {len(text):,} characters, which are more than"
                f" {most_tokens} tokens; with an answer it must fit into {most_tokens}",
                hint=TOO_LONG_HINT,
            )

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of `token_ids`, special tokens spelt out.

        Raises: `ModelRequestError` for an id that the tokenizer does not have.
        """
        strange = [token for token in token_ids if not 0 <= token < len(self._tokenizer)]
        if strange:
            raise ModelRequestError(f"the tokenizer has no token {strange[0]}")
        text: str = self._tokenizer.backend_tokenizer.decode(
            list(token_ids), skip_special_tokens=False
        )
        return text

    def special_token(self, text: str) -> int | None:
        """The id of the special or added token that is written `text`; None: there is none."""
        return self._ids.get(text)

    def _tokenized(self, text: str) -> Tokenized:
        ids = self.encode(text)
        special = {token: self._added[token] for token in ids if token in self._added}
        return Tokenized(tuple(ids), special, self._unknown)

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


def _unknown(tokenizer: TokenizerFiles | PreTrainedTokenizerBase) -> int | None:
    """The token of what the vocabulary cannot spell, unless it means something else as well."""
    unknown: int | None = tokenizer.unk_token_id
    also = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return None if unknown in also else unknown


def _most_chars(tokenizer: TokenizerFiles | PreTrainedTokenizerBase) -> int | None:
    """How many characters a token spells at most; None where tokens may stand for any number.

    Byte-pair encoding without a normalizer loses no character, unless it has an unknown token.
    """
    backend = tokenizer.backend_tokenizer
    model = backend.model
    lossless = isinstance(model, BPE) and (model.unk_token is None or model.byte_fallback)
    if not lossless or backend.normalizer is not None:
        return None
    return max(map(len, tokenizer.get_vocab()), default=1)
