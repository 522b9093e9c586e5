"""Texts that models wrote as token ids, without what their vocabulary has no tokens for.

A model may write a special token whose text is made of characters that no other token spells: as a
text it cannot be encoded. What is left of the text can.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from weft.core.errors import ContextLengthExceeded, ModelRequestError
from weft.core.ports import Tokenizing
from weft.core.values import Message

_WORDS: Final = re.compile(r"\s*\S+|\s+")
_MOST_LEFT_OUT: Final = 16
"""Words after which the text itself is not to blame."""


class EncodedText(NamedTuple):
    """Token ids, and the text that they spell."""

    ids: tuple[int, ...]
    text: str


async def encode_spellable(client: Tokenizing, text: str) -> EncodedText:
    """`text` encoded, without the words that cannot be. Raises: `ModelError`."""
    try:
        return EncodedText(await client.encode(text), text) if text else EncodedText((), "")
    except ContextLengthExceeded:
        raise
    except ModelRequestError as error:
        found = await _Spelling(client, error).of(_WORDS.findall(text))
        if not found.ids:
            raise
        return found


async def encoded_chat(client: Tokenizing, messages: tuple[Message, ...]) -> tuple[int, ...]:
    """`messages` as a prompt, without the words that cannot be encoded. Raises: `ModelError`."""
    try:
        return await client.encode_chat(messages)
    except ContextLengthExceeded:
        raise
    except ModelRequestError:
        texts = [(await encode_spellable(client, message.content)).text for message in messages]
        left = tuple(
            replace(message, content=text) for message, text in zip(messages, texts, strict=True)
        )
        if left == messages:
            raise
        return await client.encode_chat(left)


class _Spelling:
    """Finds the words to blame by halves. Raises `error` where there are too many of them."""

    def __init__(self, client: Tokenizing, error: ModelRequestError) -> None:
        self._client = client
        self._error = error
        self._left_out = 0

    async def of(self, words: Sequence[str]) -> EncodedText:
        """What can be encoded of `words`, which cannot be as a whole."""
        if len(words) < 2:
            self._left_out += 1
            if self._left_out > _MOST_LEFT_OUT:
                raise self._error
            return EncodedText((), "")
        ids: tuple[int, ...] = ()
        text = ""
        middle = len(words) // 2
        for half in (words[:middle], words[middle:]):
            whole = "".join(half)
            try:
                found = EncodedText(await self._client.encode(whole), whole)
            except ModelRequestError:
                found = await self.of(half)
            ids, text = ids + found.ids, text + found.text
        return EncodedText(ids, text)
