"""Prompts for training texts: files of conversations, and their tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from transformers import AutoTokenizer

from weft.core.errors import InputError

Conversation = tuple[tuple[str, str], ...]
"""Messages, each of a role and a text; the last one is to be answered."""
_ROLES: Final = ("system", "user", "assistant")
_LARGEST_FILE_BYTES: Final = 256 << 20
_MOST: Final = 1_000_000
_SUFFIXES: Final = (".jsonl", ".txt")


def read_prompts(path: Path) -> list[Conversation]:
    """The prompts of a file, or of all such files of a folder, sorted by name.

    `.jsonl`   a line is a text, or an object with a `prompt` or with `messages`
    `.txt`     a line is a prompt; empty ones are skipped

    Raises: `InputError` for unreadable input, with its place.
    """
    files = sorted(f for f in path.iterdir() if f.suffix in _SUFFIXES) if path.is_dir() else [path]
    prompts = [prompt for file in files for prompt in _of_file(file)]
    if not prompts:
        raise InputError(f"{path} has no prompts", hint="a prompt a line, as text or as JSON")
    if len(prompts) > _MOST:
        raise InputError(f"{path} has {len(prompts)} prompts; at most {_MOST} are read")
    return prompts


class Tokenizer:
    """A model's own tokenizer and chat template."""

    def __init__(self, model: Path) -> None:
        """Raises: `InputError` for a folder without a tokenizer."""
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=True)
        except (OSError, ValueError) as error:
            raise InputError(f"{model} has no tokenizer: {error}") from error

    def encode(self, prompt: Conversation) -> tuple[int, ...]:
        """The prompt up to the start of the answer; without a chat template, its joined texts.

        Raises: `InputError` where the template or the tokenizer rejects it.
        """
        if not getattr(self._tokenizer, "chat_template", None):
            return self._tokens("\n\n".join(text for _, text in prompt), whole=True)
        messages = [{"role": role, "content": text} for role, text in prompt]
        try:
            text = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # a template may raise anything
            raise InputError(f"the chat template refuses a prompt: {error}") from error
        return self._tokens(text)

    def plain(self, text: str) -> tuple[int, ...]:
        """The tokens of a text without special tokens.

        Raises: `InputError` where the tokenizer rejects it.
        """
        return self._tokens(text)

    def _tokens(self, text: str, *, whole: bool = False) -> tuple[int, ...]:
        """`whole`: with the model's special tokens around the text."""
        try:
            return tuple(self._tokenizer.encode(text, add_special_tokens=whole))
        except Exception as error:  # the library has no narrower error
            raise InputError(
                f"the model's tokenizer cannot read a text: {error}",
                hint="take a model of general text: this one knows other words",
            ) from error

    @property
    def end(self) -> int | None:
        """The token that ends an answer."""
        end: int | None = self._tokenizer.eos_token_id
        return end

    @property
    def reserved(self) -> int | None:
        """The last unused special token, if there is one."""
        its = self._tokenizer
        named = {its.bos_token, its.eos_token, its.pad_token, its.unk_token}
        template = str(getattr(its, "chat_template", None) or "")
        free = [
            int(number)
            for number, token in its.added_tokens_decoder.items()
            if token.special and token.content not in named and token.content not in template
        ]
        return max(free, default=None)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens."""
        return str(self._tokenizer.decode(list(tokens)))


def _of_file(path: Path) -> Iterator[Conversation]:
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise InputError(f"{path} is larger than {_LARGEST_FILE_BYTES >> 20} MiB")
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"{path}, line {number}"
            yield _parsed(line, where) if path.suffix == ".jsonl" else (("user", line.strip()),)


def _parsed(line: str, where: str) -> Conversation:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: no JSON: {error}") from error
    if isinstance(value, dict) and "messages" in value:
        messages = value["messages"]
        if isinstance(messages, list) and messages:
            return tuple(_message(message, where) for message in messages)
        raise InputError(f"{where}: `messages` is no list of turns")
    text = value.get("prompt") if isinstance(value, dict) else value
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            f"{where}: neither a text nor an object with one as `prompt`",
            hint='such as {"prompt": "..."} or {"messages": [{"role": "user", "content": "..."}]}',
        )
    return (("user", text),)


def _message(message: object, where: str) -> tuple[str, str]:
    if isinstance(message, dict):
        role, content = message.get("role"), message.get("content")
        if role in _ROLES and isinstance(content, str):
            return role, content
    raise InputError(f"{where}: a turn needs a `role` of {', '.join(_ROLES)} and a text `content`")
