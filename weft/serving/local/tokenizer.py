"""Text to token ids and back, with a model's own tokenizer and chat template; loads no weights.

A plain tokenizer is read from its files alone: importing transformers takes seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import TemplateError
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE

from weft.core.errors import ContextLengthExceeded, ModelRequestError
from weft.core.values import Message
from weft.serving.local.chat_template import environment, turn_of, variables
from weft.serving.text import PlainText, Tokenized, only_blanks
from weft.serving.text.reasoning_forms import (
    ReasoningStyle,
    continued,
    mentions_thoughts,
    style_of,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


_PLAIN_CLASS: Final = "TokenizersBackend"
_SPECIAL: Final = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token")
_IGNORED: Final = frozenset(
    {
        "backend",
        "clean_up_tokenization_spaces",
        "is_local",
        "local_files_only",
        "model_max_length",
        "tokenizer_class",
    }
)


class TokenizerFiles:
    """The tokenizer of a folder whose `tokenizer.json` is complete except for the chat template.

    Raises: `ValueError` for other tokenizers, `OSError` where a file is missing.
    """

    def __init__(self, folder: Path) -> None:
        config = _config(folder / "tokenizer_config.json")
        try:
            self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the library raises nothing more exact
            raise ValueError(f"tokenizer.json cannot be read: {error}") from error
        self.added_tokens_decoder: dict[int, AddedToken] = (
            self.backend_tokenizer.get_added_tokens_decoder()
        )
        self._special = {name: config[name] for name in _SPECIAL if config.get(name) is not None}
        self._check()
        template = folder / "chat_template.jinja"
        self.chat_template = template.read_text(encoding="utf-8") if template.exists() else None
        try:
            self._template = environment().from_string(self.chat_template or "")
        except TemplateError as error:
            raise ValueError(f"the chat template cannot be compiled: {error}") from error

    def __len__(self) -> int:
        size: int = self.backend_tokenizer.get_vocab_size(with_added_tokens=True)
        return size

    @property
    def bos_token_id(self) -> int | None:
        return self._id("bos_token")

    @property
    def eos_token_id(self) -> int | None:
        return self._id("eos_token")

    @property
    def pad_token_id(self) -> int | None:
        return self._id("pad_token")

    @property
    def unk_token_id(self) -> int | None:
        return self._id("unk_token")

    def get_vocab(self) -> dict[str, int]:
        """Token ids by spelling."""
        vocabulary: dict[str, int] = self.backend_tokenizer.get_vocab(with_added_tokens=True)
        return vocabulary

    def apply_chat_template(
        self,
        turns: Sequence[dict[str, Any]],
        *,
        tokenize: bool,
        add_generation_prompt: bool,
        **kwargs: Any,
    ) -> str:
        """The text of a conversation; `kwargs` are further variables of the template."""
        assert not tokenize
        return self._template.render(
            messages=turns,
            tools=None,
            documents=None,
            add_generation_prompt=add_generation_prompt,
            **self._special,
            **kwargs,
        )

    def _id(self, name: str) -> int | None:
        spelling = self._special.get(name)
        if spelling is None:
            return None
        token: int | None = self.backend_tokenizer.token_to_id(spelling)
        return token

    def _check(self) -> None:
        marked = {mark.content for mark in self.added_tokens_decoder.values() if mark.special}
        if not marked.issuperset(self._special.values()):
            raise ValueError("the configuration adds special tokens")
        if self.backend_tokenizer.truncation or self.backend_tokenizer.padding:
            raise ValueError("it truncates or pads")


def read_tokenizer(folder: Path) -> TokenizerFiles | PreTrainedTokenizerBase:
    """The tokenizer of a model folder. Raises: what transformers raises for broken files."""
    try:
        return TokenizerFiles(folder)
    except (OSError, ValueError):
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _config(file: Path) -> dict[str, Any]:
    config = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(config, dict) or config.get("tokenizer_class") != _PLAIN_CLASS:
        raise ValueError(f"it is no {_PLAIN_CLASS}")
    if not set(config) <= _IGNORED.union(_SPECIAL):
        raise ValueError("the configuration changes the tokenizer")
    if not all(isinstance(config.get(name) or "", str) for name in _SPECIAL):
        raise ValueError("special tokens with options of their own")
    return config


_MAX_WORDS_TRIED: Final = 1000
_MAX_WORD: Final = 40
TOO_LONG_HINT: Final = "shorten the prompt or split it over several calls"


class LocalTokenizer:
    """Implements the methods of `Tokenizing` for one model. Any thread may use it.

    `template`: variables of the chat template in every prompt.
    """

    def __init__(
        self,
        tokenizer: TokenizerFiles | PreTrainedTokenizerBase,
        template: Mapping[str, Any] | None = None,
    ) -> None:
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
        self._template = template or {}
        self._max_chars = _max_chars(tokenizer)

    @classmethod
    def read(cls, path: Path, template: Mapping[str, Any] | None = None) -> LocalTokenizer:
        """Read the tokenizer of a model folder. Raises: `OSError`, `ValueError`."""
        return cls(read_tokenizer(path), template)

    def encode(self, text: str) -> list[int]:
        """The token ids of `text`; adds none, and reads spelt-out special tokens as such.

        Raises: `ModelRequestError` for a text without tokens.
        """
        try:
            # Unlike `encode`, this lets other threads run.
            found = self._tokenizer.backend_tokenizer.encode_batch_fast(
                [text], add_special_tokens=False
            )[0]
        except Exception as error:  # the library raises nothing more exact
            reason = self._unreadable_word(text) or str(error)
            raise ModelRequestError(
                f"the tokenizer cannot read this text: {reason}", hint="it may know no such words"
            ) from error
        ids: list[int] = found.ids
        return ids

    def _unreadable_word(self, text: str) -> str:
        """A reason that names the first word without tokens; empty if none of the first ones."""
        words = self._marks.sub(" ", text).split(maxsplit=_MAX_WORDS_TRIED)
        for word in words[:_MAX_WORDS_TRIED]:
            try:
                self._tokenizer.backend_tokenizer.encode_batch_fast(
                    [word], add_special_tokens=False
                )
            except Exception:  # noqa: BLE001 - the library raises nothing more exact
                return f"no tokens for {word[:_MAX_WORD]!r}"
        return ""

    def encode_plain(self, text: str) -> list[int]:
        """The token ids of `text`, without special or added tokens.

        Raises: `ModelRequestError` for a character that only such a token spells.
        """
        return list(self._plain.encode(text, self._tokenized))

    def encode_chat(
        self,
        messages: Sequence[Message],
        unfinished: bool = False,
        max_tokens: int | None = None,
        template: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """The prompt of a conversation, with the opening of the answer.

        `unfinished`: the last message is the answer's beginning, and stays open; a thought that the
        prompt opens comes before it. `max_tokens`: a text that is certainly longer is refused
        without tokenizing it. `template`: further variables of the chat template. Special tokens
        that are spelt out in a message are broken up, so that no tool or user can forge another
        role.

        Raises: `ModelRequestError` when the model has no chat template or its template refuses.
        """
        turns = [turn_of(message, self._broken_up) for message in messages]
        answer = turns.pop()["content"] if unfinished else ""
        text = continued(self._rendered(turns, template), answer)
        if max_tokens is not None:
            self._check_length(text, max_tokens)
        return self.encode(text)

    @property
    def shows_thoughts(self) -> bool:
        """Whether the chat template mentions any form of thoughts."""
        source = getattr(self._tokenizer, "chat_template", None)
        return isinstance(source, str) and mentions_thoughts(source)

    def reasoning_style(self, template: Mapping[str, Any] | None = None) -> ReasoningStyle | None:
        """The form of the model's thoughts, where its chat template shows it; None otherwise.

        `template`: the request's variables, which may open a thought or switch it off.
        """
        if not self.shows_thoughts:
            return None
        source = str(self._tokenizer.chat_template)
        try:
            prompt = self._rendered([{"role": "user", "content": "?"}], template)
        except ModelRequestError:
            return None
        return style_of(source, prompt)

    def _rendered(self, turns: Sequence[dict[str, Any]], template: Mapping[str, Any] | None) -> str:
        """The text of a conversation and the opening of its answer. Raises: `ModelRequestError`."""
        if not getattr(self._tokenizer, "chat_template", None):
            raise ModelRequestError(
                "this model has no chat template", hint="give prompt_token_ids instead of messages"
            )
        given = variables({**self._template, **(template or {})}, self._broken_up)
        try:
            text: str = self._tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True, **given
            )
        except (
            Exception
        ) as error:  # a template is the model author's program: it may raise anything
            raise ModelRequestError(f"the chat template refuses these messages: {error}") from error
        return text

    def _check_length(self, text: str, max_tokens: int) -> None:
        """Raises: `ContextLengthExceeded` for more characters than `max_tokens` can spell."""
        if self._max_chars is not None and len(text) > self._max_chars * max_tokens:
            raise ContextLengthExceeded(
                f"the prompt has {len(text):,} characters, which are more than"
                f" {max_tokens} tokens; with an answer it must fit into {max_tokens}",
                hint=TOO_LONG_HINT,
            )

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of `token_ids`, with special tokens spelt out.

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
        """The id of the special or added token spelt `text`; None without one."""
        return self._ids.get(text)

    def _tokenized(self, text: str) -> Tokenized:
        ids = self.encode(text)
        special = {token: self._added[token] for token in ids if token in self._added}
        return Tokenized(tuple(ids), special, self._unknown)

    def _broken_up(self, text: str) -> str:
        """`text` with its special tokens spelt in another way."""
        return self._marks.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", text)


def _unknown(tokenizer: TokenizerFiles | PreTrainedTokenizerBase) -> int | None:
    """The token for text that the vocabulary cannot spell, unless it is also another token."""
    unknown: int | None = tokenizer.unk_token_id
    also = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return None if unknown in also else unknown


def _max_chars(tokenizer: TokenizerFiles | PreTrainedTokenizerBase) -> int | None:
    """The most characters that a token spells; None where tokens may stand for any number.

    Byte-pair encoding without a normalizer loses no character, unless it has an unknown token.
    """
    backend = tokenizer.backend_tokenizer
    model = backend.model
    lossless = isinstance(model, BPE) and (model.unk_token is None or model.byte_fallback)
    if not lossless or backend.normalizer is not None:
        return None
    return max(map(len, tokenizer.get_vocab()), default=1)
