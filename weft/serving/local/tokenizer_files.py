"""A tokenizer by its files alone: transformers, whose import takes seconds, is for all others.

Has of transformers' tokenizers what `Tokens` and `Vocabulary` use, under the same names.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """The tokenizer of a folder whose `tokenizer.json` says all but the template of a chat.

    Raises: `ValueError` for any other, `OSError` where a file is missing.
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
            self._template = _environment().from_string(self.chat_template or "")
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
        self, turns: Sequence[dict[str, Any]], *, tokenize: bool, add_generation_prompt: bool
    ) -> str:
        """The text of a conversation."""
        assert not tokenize
        return self._template.render(
            messages=turns,
            tools=None,
            documents=None,
            add_generation_prompt=add_generation_prompt,
            **self._special,
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


def _environment() -> ImmutableSandboxedEnvironment:
    """What transformers gives a template of a chat."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)  # noqa: DTZ005
    return environment


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _refuse(message: str) -> None:
    raise TemplateError(message)
