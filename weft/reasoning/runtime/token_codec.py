"""Converts a protocol's parts to one model's token ids and back, without re-encoding.

Only where a stop text ends inside a token, or a context is cut in one, is the tail encoded anew. A
model may write a special token whose text no other tokens spell: as text it cannot be encoded, so
it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

from weft.core.errors import CapabilityError, ContextLengthExceeded, ModelRequestError
from weft.core.generated_text import THOUGHTS, open_thought, opening_of_thought
from weft.core.ports import Capabilities, ModelClient, Tokenizing
from weft.core.values import Completion, Message
from weft.reasoning.runtime.context import TokenContext
from weft.reasoning.runtime.grammar import ProtocolGrammar
from weft.reasoning.runtime.moves import (
    ControlTag,
    Ended,
    Opening,
    Parts,
    Piece,
    ProtocolText,
    UntrustedText,
)
from weft.reasoning.runtime.special_tokens import SpecialTokens

_WORDS: Final = re.compile(r"\s*\S+|\s+")
_MOST_LEFT_OUT: Final = 16
"""The number of unencodable words after which the error is raised."""


class EncodedText(NamedTuple):
    """Token ids, and their text."""

    ids: tuple[int, ...]
    text: str


async def encode_spellable(client: Tokenizing, text: str) -> EncodedText:
    """`text` encoded, without unencodable words. Raises: `ModelError`."""
    try:
        return EncodedText(await client.encode(text), text) if text else EncodedText((), "")
    except ContextLengthExceeded:
        raise
    except ModelRequestError as error:
        found = await _WordBisection(client, error).of(_WORDS.findall(text))
        if not found.ids:
            raise
        return found


async def encoded_chat(
    client: Tokenizing,
    messages: tuple[Message, ...],
    *,
    chat_template_kwargs: Mapping[str, Any] | None = None,
) -> tuple[int, ...]:
    """`messages` as a prompt, without unencodable words. Raises: `ModelError`."""
    try:
        return await client.encode_chat(messages, chat_template_kwargs=chat_template_kwargs)
    except ContextLengthExceeded:
        raise
    except ModelRequestError:
        texts = [(await encode_spellable(client, message.content)).text for message in messages]
        left = tuple(
            replace(message, content=text) for message, text in zip(messages, texts, strict=True)
        )
        if left == messages:
            raise
        return await client.encode_chat(left, chat_template_kwargs=chat_template_kwargs)


class _WordBisection:
    """Finds unencodable words by bisection. Raises `error` where there are too many of them."""

    def __init__(self, client: Tokenizing, error: ModelRequestError) -> None:
        self._client = client
        self._error = error
        self._left_out = 0

    async def of(self, words: Sequence[str]) -> EncodedText:
        """The encodable part of `words`, which cannot be encoded as a whole."""
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


_NEAR: Final = 4
TAGS: Final = tuple(tag for pair in THOUGHTS[:2] for tag in pair)
"""The tags of thoughts, where the model has them as special tokens."""
OPENING_TOKENS: Final = 16
"""The end of a prompt that may open a thought: a tag in several tokens, and a line break."""


@dataclass(frozen=True, slots=True)
class EncodedParts:
    """Encoded parts. `runs`: lengths in tokens, each with whether the text is the runtime's own."""

    ids: tuple[int, ...]
    text: str
    runs: tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class TokenOutput:
    """A model's output: its `ids`, without an end-of-sequence token, and their text."""

    ids: tuple[int, ...]
    text: str
    ended: Ended
    stop: str | None = None


class TokenCodec:
    """The tokens of one model, for a protocol whose tags are `special`.

    `template`: variables for the chat template of prompts.
    """

    def __init__(
        self,
        client: Tokenizing,
        special: SpecialTokens,
        template: Mapping[str, Any] | None = None,
    ) -> None:
        self._client = client
        self._template = template
        self._special: dict[int, bool] = {}
        self.special = special

    @classmethod
    async def of(
        cls,
        model: ModelClient,
        grammar: ProtocolGrammar,
        capabilities: Capabilities,
        template: Mapping[str, Any] | None = None,
    ) -> TokenCodec:
        """The codec of `model`, with those tags of `grammar` that are its special tokens.

        Raises: `CapabilityError` when it takes no token ids; `ModelError`.
        """
        if not isinstance(model, Tokenizing) or not capabilities.prompt_token_ids:
            raise CapabilityError(
                f"{model.model} takes no token ids, which threads need",
                hint="use a completion server (vLLM) or the local model, or a strategy by messages",
            )
        ids: dict[str, int] = {}
        also = tuple(dict.fromkeys((*grammar.also, *TAGS)))
        for tag in (*grammar.tags, *also) if capabilities.stop_token_ids else ():
            number = await model.special_token(tag)
            if number is not None:
                ids[tag] = number
        return cls(model, SpecialTokens(grammar.tags, ids, also, trained=grammar.trained), template)

    # -- writing -----------------------------------------------------------------------------

    async def open(
        self, opening: Opening, *, generated: bool = False
    ) -> tuple[tuple[int, ...], EncodedParts]:
        """The prompt of a conversation, and the parts after it. Raises: `ModelError`.

        `generated`: models wrote the messages, which lose unencodable words.
        """
        chat: tuple[int, ...] = ()
        if opening.messages:
            encode = partial(encoded_chat, self._client) if generated else self._client.encode_chat
            chat = await encode(opening.messages, chat_template_kwargs=self._template)
        return chat, await self.write(opening.parts)

    async def split_opened(self, prompt: tuple[int, ...]) -> tuple[tuple[int, ...], EncodedParts]:
        """`prompt`, and its end where that opens a thought, as the templates of some models do.

        Raises: `ModelError`.
        """
        opened = opening_of_thought(await self.decode(prompt[-OPENING_TOKENS:]))
        for count in range(1, OPENING_TOKENS + 1) if opened else ():
            if await self.decode(prompt[-count:]) == opened:
                end = EncodedParts(prompt[-count:], opened, ((count, True),))
                return prompt[:-count], end
        return prompt, EncodedParts((), "", ())

    async def closing(self, text: str) -> Parts:
        """What ends the thought that is open at the end of `text`; nothing where the vocabulary
        cannot spell it. Raises: `ModelError`.
        """
        end = open_thought(text)
        try:
            return (await self._client.encode(f"\n{end}", special=True),) if end else ()
        except ContextLengthExceeded:
            raise
        except ModelRequestError:
            return ()

    async def write(self, parts: Parts) -> EncodedParts:
        """`parts` as token ids; adjacent texts are encoded together. Raises: `ModelError`."""
        writer = _PartsEncoder(self._client)
        for part in parts:
            if isinstance(part, tuple):
                await writer.add(part, await self.decode(part), own=False)
            elif isinstance(part, UntrustedText):
                await writer.add(*await self._encode_untrusted(part), own=False)
            elif isinstance(part, ControlTag) and part.text in self.special.ids:
                await writer.add((self.special.ids[part.text],), part.text, own=True)
            else:
                writer.words.append(part.text)
        return await writer.written()

    async def _encode_untrusted(self, part: UntrustedText) -> tuple[tuple[int, ...], str]:
        try:
            ids, text = await encode_spellable(self._client, self.special.guarded(part.text))
        except ContextLengthExceeded:
            raise
        except ModelRequestError:  # all of it is a special token that nothing else spells
            return (), ""
        if part.max_tokens is None or len(ids) <= part.max_tokens:
            return ids, text
        ids = ids[len(ids) - part.max_tokens :]
        return ids, await self.decode(ids)

    def stops(self, texts: Sequence[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        ids = tuple(self.special.ids[text] for text in texts if text in self.special.ids)
        return ids, tuple(text for text in texts if text not in self.special.ids)

    # -- reading -----------------------------------------------------------------------------

    async def read(self, completion: Completion, stops: Sequence[str]) -> TokenOutput:
        """The output of `completion`, whose call had the `stops`. Raises: `ModelError`."""
        stop = self._stopped_by(completion, stops)
        ids = completion.token_ids
        if not ids:
            return await self._read_text(completion, stop)
        if stop is not None and stop not in self.special.ids:
            text = await self._client.decode(ids)
            at = text.find(stop)
            wanted = completion.text + stop if at < 0 else text[: at + len(stop)]
            kept, tail = await self.fit(ids, wanted)
            return TokenOutput(ids[:kept] + tail, wanted, "stop", stop)
        if stop is None and completion.finish_reason != "length" and await self._ends(ids[-1]):
            ids = ids[:-1]
        text = await self._client.decode(ids) if ids else ""
        return TokenOutput(ids, text, _ended(completion, stop), stop)

    async def _read_text(self, completion: Completion, stop: str | None) -> TokenOutput:
        """The output of a server that hides token ids."""
        tag = (ControlTag(stop),) if stop is not None else ()
        try:
            written = await self.write((ProtocolText(completion.text), *tag))
        except ModelRequestError:
            text = (await encode_spellable(self._client, completion.text)).text
            written = await self.write((ProtocolText(text), *tag))
        return TokenOutput(written.ids, written.text, _ended(completion, stop), stop)

    def _stopped_by(self, completion: Completion, stops: Sequence[str]) -> str | None:
        stop = completion.stop
        if stop is None and completion.token_ids:
            stop = completion.token_ids[-1]
        if stop is None or isinstance(stop, str):
            return stop
        return next((tag for tag in stops if self.special.ids.get(tag) == stop), None)

    async def _ends(self, token: int) -> bool:
        """Whether `token` is a special token that ended an answer."""
        if token not in self._special:
            text = await self._client.decode((token,))
            number = await self._client.special_token(text) if text else token
            self._special[token] = number == token
        return self._special[token]

    async def decode(self, ids: tuple[int, ...]) -> str:
        """The text of `ids`. Raises: `ModelError`."""
        return await self._client.decode(ids) if ids else ""

    async def encode(self, text: str) -> tuple[int, ...]:
        """The ids of a model's text, without unencodable words. Raises: `ModelError`."""
        return (await encode_spellable(self._client, text)).ids

    async def pieces(self, ids: tuple[int, ...]) -> tuple[Piece, ...]:
        """`ids` split at tags: special ones by their ids, the others by their text."""
        found: list[Piece] = []
        for stretch in self.special.stretches(ids):
            if isinstance(stretch, ControlTag):
                found.append(stretch)
            else:
                found += self.special.pieces(await self._client.decode(stretch))
        return tuple(found)

    # -- cutting -----------------------------------------------------------------------------

    async def fit(self, ids: tuple[int, ...], text: str) -> tuple[int, tuple[int, ...]]:
        """How many of `ids` spell the beginning of `text`, and the ids of the rest."""
        lengths = _PrefixTexts(self._client, ids)
        low, high = await self._bounds(lengths, len(ids), len(text))
        while low < high:
            middle = (low + high + 1) // 2
            if len(await lengths.text(middle)) <= len(text):
                low = middle
            else:
                high = middle - 1
        while low and not text.startswith(await lengths.text(low)):
            low -= 1
        rest = text[len(await lengths.text(low)) :]
        return low, await self.encode(rest)

    async def _bounds(self, lengths: _PrefixTexts, most: int, chars: int) -> tuple[int, int]:
        """The range to search for `chars` characters: most often near the end, tried first."""
        for count in range(most, max(0, most - _NEAR), -1):
            if len(await lengths.text(count)) <= chars:
                return count, count
        return 0, max(0, most - _NEAR)

    async def up_to(self, context: TokenContext, end: str) -> TokenContext:
        """`context` up to the last `end` after its prompt; all of it without one.

        Raises: `ModelError`.
        """
        at = context.text.rfind(end)
        if at < 0:
            return context
        wanted = context.text[: at + len(end)]
        kept, tail = await self.fit(context.ids, wanted)
        before = context.cut(kept, await self.decode(context.ids[:kept]))
        return before.plus(tail, wanted[len(before.text) :])

    async def back_to(self, context: TokenContext, since: str) -> TokenContext:
        """`context` before the last `since` after its prompt; all of it without one."""
        if since in self.special.ids:
            number = self.special.ids[since]
            if number not in context.ids:
                return context
            kept = len(context.ids) - 1 - context.ids[::-1].index(number)
            return context.cut(kept, await self.decode(context.ids[:kept]))
        at = context.text.rfind(since)
        if at < 0:
            return context
        kept, tail = await self.fit(context.ids, context.text[:at])
        before = context.cut(kept, await self.decode(context.ids[:kept]))
        return before.plus(tail, context.text[len(before.text) : at])


class _PartsEncoder:
    """Collects parts; adjacent texts are encoded together."""

    def __init__(self, client: Tokenizing) -> None:
        self._client = client
        self._ids: list[int] = []
        self._texts: list[str] = []
        self._runs: list[tuple[int, bool]] = []
        self.words: list[str] = []

    async def add(self, ids: tuple[int, ...], text: str, *, own: bool) -> None:
        await self._flush()
        self._put(ids, text, own=own)

    async def written(self) -> EncodedParts:
        await self._flush()
        return EncodedParts(tuple(self._ids), "".join(self._texts), tuple(self._runs))

    async def _flush(self) -> None:
        text = "".join(self.words)
        self.words.clear()
        if text:
            self._put(await self._client.encode(text), text, own=True)

    def _put(self, ids: tuple[int, ...], text: str, *, own: bool) -> None:
        self._ids += ids
        self._texts.append(text)
        self._runs.append((len(ids), own))


class _PrefixTexts:
    """The texts of the prefixes of `ids`, decoded on demand."""

    def __init__(self, client: Tokenizing, ids: tuple[int, ...]) -> None:
        self._client = client
        self._ids = ids
        self._texts: dict[int, str] = {0: ""}

    async def text(self, count: int) -> str:
        if count not in self._texts:
            self._texts[count] = await self._client.decode(self._ids[:count])
        return self._texts[count]


def _ended(completion: Completion, stop: str | None) -> Ended:
    if stop is not None:
        return "stop"
    return "length" if completion.finish_reason == "length" else "end"
