"""A scripted model over token ids: a token is a character, or a special tag.

Follows a request's stops, lengths and cancellation as a server does, on the loop's clock, and has a
prefix cache, whose hits it reports.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.core.errors import ModelRequestError, ModelUnavailable, WeftError
from weft.core.ports.model import Capabilities, ModelEvent, ModelRequest, Prefilled, TextDelta
from weft.core.values import Completion, FinishReason, Message, Usage

END: Final = 0x110000
"""The token that ends an answer. Special tokens follow the last character of Unicode."""

_ROLES: Final = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class TokenReply:
    """The answer of the model if nothing stopped it; its end comes after the last token.

    `break_after_tokens`: the stream breaks off there. `error`: raised before the first token.
    `endless`: it repeats its last token for ever. `per_token_s` replaces the model's own.
    """

    tokens: Sequence[int] | str = ()
    error: WeftError | None = None
    break_after_tokens: int | None = None
    endless: bool = False
    per_token_s: float | None = None


class _Writing:
    """An answer while it is written. `held` are tokens that may begin a stop text."""

    def __init__(self, request: ModelRequest, spell: Callable[[Sequence[int]], str]) -> None:
        self._sampling = request.sampling
        self._spell = spell
        self.tokens: list[int] = []
        self.held: list[int] = []
        self.stop: str | int | None = None
        self.reason: FinishReason = "length"

    def write(self, token: int) -> Sequence[int]:
        """Add the next token; return those that are now certain to be part of the answer."""
        self.tokens.append(token)
        self.held.append(token)
        if token in self._sampling.stop_token_ids:
            self.stop = token
        elif self._sampling.stop:
            longest = max(map(len, self._sampling.stop))
            tail = self._spell(self.tokens[-longest:])
            self.stop = next((stop for stop in self._sampling.stop if tail.endswith(stop)), None)
        if self.stop is not None or token == END:
            self.reason = "stop"
            return ()
        sure = len(self.held) - self._possible_stop()
        shown, self.held = self.held[:sure], self.held[sure:]
        return shown

    def _possible_stop(self) -> int:
        """The number of held tokens that may begin a stop text."""
        return next(
            (
                len(self.held) - at
                for at in range(len(self.held))
                if any(stop.startswith(self._spell(self.held[at:])) for stop in self._sampling.stop)
            ),
            0,
        )

    def rest(self) -> Sequence[int]:
        """At the end: the held tokens that are part of the answer's text after all."""
        if self.reason == "length":
            return self.held
        return self.held[: -len(self.stop)] if isinstance(self.stop, str) else self.held[:-1]

    def text(self) -> str:
        """The text so far, without a stop text."""
        text = self._spell(self.tokens[:-1] if isinstance(self.stop, int) else self.tokens)
        return text.removesuffix(self.stop) if isinstance(self.stop, str) else text


Script = Callable[[tuple[int, ...], ModelRequest], "Sequence[int] | str | TokenReply"]


class TokenModel:
    """Implements `ModelClient` and `Tokenizing`. `script` gets the prompt's ids and the request.

    A script's text is read with `tags` as special tokens; texts of answers lack them unless
    `shows_tags`. `opening` is what the chat template writes before an answer, read likewise. So a
    model that thinks, and whose prompt opens the thought, is

        TokenModel(script, tags=("<think>", "</think>"), opening="<think>", shows_tags=True)

    A request takes `prefill_s` for each uncached prompt token, in whole blocks of `block_tokens`,
    and `per_token_s` for each token that it writes. `requests` lists the requests, `generated`
    counts written tokens, `cancelled` streams closed before their end, `running` those now open.
    """

    def __init__(
        self,
        script: Script,
        *,
        tags: Sequence[str] = (),
        opening: str = "",
        shows_tags: bool = False,
        model: str = "tokens",
        prefill_s: float = 0.0,
        per_token_s: float = 0.0,
        context_tokens: int | None = None,
        block_tokens: int = 16,
        placement: bool = False,
        hides_token_ids: bool = False,
    ) -> None:
        self._script = script
        self._model = model
        self._prefill_s = prefill_s
        self._per_token_s = per_token_s
        self._context_tokens = context_tokens
        self._block_tokens = block_tokens
        self._hides_token_ids = hides_token_ids
        names = ["<|end|>", *(f"<|{role}|>" for role in _ROLES), *tags]
        self._ids = {text: END + index for index, text in enumerate(names)}
        self._texts = {number: text for text, number in self._ids.items()}
        self._opening = self.read(opening)
        hidden = {*names} - {*tags} if shows_tags else {*names}
        self._hidden = {self._ids[text] for text in hidden}
        self._capabilities = Capabilities(
            token_ids=not hides_token_ids,
            prompt_token_ids=True,
            priority=True,
            prefix_reuse=True,
            stop_token_ids=True,
            placement=placement,
            max_context_tokens=context_tokens,
        )
        self._cache: set[int] = set()
        self._closed = False
        self.requests: list[ModelRequest] = []
        self.generated = 0
        self.cancelled = 0
        self.running = 0

    @property
    def model(self) -> str:
        return self._model

    async def capabilities(self) -> Capabilities:
        return self._capabilities

    # -- text and tokens ---------------------------------------------------------------------

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        return self.read(text) if special else tuple(map(ord, text))

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[int, ...]:
        ids: list[int] = []
        for message in messages:
            ids += [self._ids[f"<|{message.role}|>"], *map(ord, message.content), END]
        return (*ids, self._ids["<|assistant|>"], *self._opening)

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return self.spell(token_ids)

    async def special_token(self, text: str) -> int | None:
        return self._ids.get(text)

    def read(self, text: str) -> tuple[int, ...]:
        """The ids of `text`, with its special tokens; the longest match counts."""
        ids: list[int] = []
        at = 0
        by_length = sorted(self._ids, key=len, reverse=True)
        while at < len(text):
            tag = next((tag for tag in by_length if text.startswith(tag, at)), None)
            ids.append(ord(text[at]) if tag is None else self._ids[tag])
            at += 1 if tag is None else len(tag)
        return tuple(ids)

    def spell(self, token_ids: Sequence[int]) -> str:
        """The text of `token_ids`, with its special tokens."""
        return "".join(self._texts[i] if i in self._texts else chr(i) for i in token_ids)

    # -- answers -----------------------------------------------------------------------------

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        prompt = request.prompt_token_ids or await self.encode_chat(request.messages)
        room = self._room(prompt, request)
        self.requests.append(request)
        reply = self._script(prompt, request)
        reply = reply if isinstance(reply, TokenReply) else TokenReply(reply)
        self.running += 1
        finished = False
        try:
            async for event in self._stream(request, prompt, reply, room):
                finished = isinstance(event, Completion)
                yield event
        except WeftError:
            finished = True
            raise
        finally:
            self.running -= 1
            self.cancelled += not finished

    def _room(self, prompt: tuple[int, ...], request: ModelRequest) -> int | None:
        """The most tokens that may be written."""
        self._check_open()
        limits = [request.sampling.max_tokens]
        if self._context_tokens is not None:
            limits.append(self._context_tokens - len(prompt))
        room = min((limit for limit in limits if limit is not None), default=None)
        if room is not None and room < 1:
            raise ModelRequestError(f"{len(prompt)} prompt tokens leave no room for an answer")
        return room

    async def _stream(
        self,
        request: ModelRequest,
        prompt: tuple[int, ...],
        reply: TokenReply,
        room: int | None,
    ) -> AsyncGenerator[ModelEvent, None]:
        cached = self._cached_tokens(prompt)
        await asyncio.sleep(self._prefill_s * (len(prompt) - cached))
        if reply.error is not None:
            raise reply.error
        self._remember(prompt)
        yield Prefilled(prompt)
        writing = _Writing(request, self._text)
        pace_s = self._per_token_s if reply.per_token_s is None else reply.per_token_s
        for token in self._tokens(reply):
            if len(writing.tokens) == room or writing.reason == "stop":
                break
            if len(writing.tokens) == reply.break_after_tokens:
                raise ModelUnavailable(f"the stream of {self._model} broke off")
            await asyncio.sleep(pace_s)
            self._check_open()
            for shown in writing.write(token):
                self.generated += 1
                yield TextDelta(self._text([shown]), self._shown([shown]))
        self.generated += len(writing.held)
        for shown in writing.rest():
            yield TextDelta(self._text([shown]), self._shown([shown]))
        written = writing.tokens
        self._remember((*prompt, *written))
        yield Completion(
            writing.text(),
            writing.reason,
            token_ids=self._shown(written),
            usage=Usage(len(prompt), len(written), cached, requests=1, forwards=len(written)),
            model=self._model,
            stop=writing.stop,
        )

    def _tokens(self, reply: TokenReply) -> Iterator[int]:
        tokens = self.read(reply.tokens) if isinstance(reply.tokens, str) else reply.tokens
        yield from tokens
        while reply.endless:
            yield tokens[-1] if tokens else ord(" ")
        yield END

    def _text(self, ids: Sequence[int]) -> str:
        """The text as servers return it: without special tokens."""
        return self.spell([i for i in ids if i not in self._hidden])

    def _shown(self, ids: Sequence[int]) -> tuple[int, ...]:
        return () if self._hides_token_ids else tuple(ids)

    def _check_open(self) -> None:
        if self._closed:
            raise ModelUnavailable(f"{self._model} is closed")

    # -- prefix cache ------------------------------------------------------------------------

    def _cached_tokens(self, prompt: tuple[int, ...]) -> int:
        """The number of leading tokens in the cache: whole blocks, and never the last token."""
        found = 0
        for block in self._blocks(prompt[:-1]):
            if block not in self._cache:
                break
            found += self._block_tokens
        return found

    def _remember(self, ids: tuple[int, ...]) -> None:
        self._cache.update(self._blocks(ids))

    def _blocks(self, ids: tuple[int, ...]) -> Iterator[int]:
        """A hash for each full block and all before it."""
        chain = 0
        for end in range(self._block_tokens, len(ids) + 1, self._block_tokens):
            chain = hash((chain, ids[end - self._block_tokens : end]))
            yield chain

    async def aclose(self) -> None:
        self._closed = True
