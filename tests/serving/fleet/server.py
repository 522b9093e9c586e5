"""A replica in virtual time that streams as vLLM does, and fails as told.

Its greedy model is a function of the context, so every answer has one right text. Some of its
tokens are bytes in the middle of a character.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from weft.core.errors import ModelOverloaded, ModelUnavailable
from weft.core.ports import (
    Capabilities,
    ModelEvent,
    ModelRequest,
    Prefilled,
    TextDelta,
)
from weft.core.values import Completion, FinishReason, Usage

END = 0
CHARACTERS = ["é", "漢", "🎉"]
PIECES: list[bytes] = [b"", b"a", b"b", b" the", b"ab", b"##", b"#", b"\n", b" ok"]
LETTERS = list(range(1, len(PIECES)))
STARTS: list[int] = []
NEXT_BYTE: dict[int, int] = {}
for _character in CHARACTERS:
    _bytes = _character.encode()
    STARTS.append(len(PIECES))
    for _position, _byte in enumerate(_bytes):
        if _position + 1 < len(_bytes):
            NEXT_BYTE[len(PIECES)] = len(PIECES) + 1
        PIECES.append(bytes([_byte]))
CONTEXT = 4000
ABLE = Capabilities(
    token_ids=True,
    prompt_token_ids=True,
    logprobs=True,
    priority=True,
    prefix_reuse=True,
    stop_token_ids=True,
    max_context_tokens=CONTEXT,
)


@dataclass
class Fate:
    """What happens to one request. Nothing, by default.

    `break_at_stop`: the stream breaks off between a stop token and the news that it was the end.
    """

    break_after_tokens: int | None = None
    overloaded_s: float | None = None
    refuse: bool = False
    merge: int = 1
    break_at_stop: bool = False


def prompt_ids(request: ModelRequest) -> list[int]:
    if request.prompt_token_ids:
        return list(request.prompt_token_ids)
    text = "|".join(f"{message.role}:{message.content}" for message in request.messages)
    return [LETTERS[ord(character) % len(LETTERS)] for character in text]


def next_token(context: list[int]) -> int:
    """Greedy decoding: nothing but the context counts."""
    if context[-1] in NEXT_BYTE:
        return NEXT_BYTE[context[-1]]
    draw = zlib.crc32(bytes(context))
    if draw % 97 == 0:
        return END
    choices = LETTERS + STARTS
    return choices[(draw >> 8) % len(choices)]


def decoded(ids: list[int]) -> str:
    """The text as far as its characters are complete."""
    return b"".join(PIECES[token] for token in ids).decode("utf-8", "ignore")


class Detokenizer:
    """What vLLM's does: see the notes in `weft.serving.fleet.transcript`."""

    def __init__(self, prompt: list[int], stop: tuple[str, ...]) -> None:
        self._prompt = prompt
        self._echoes = prompt[-1] in NEXT_BYTE
        self._stop = stop
        self.stopped: str | None = None
        self._lag = max((len(text) for text in stop), default=1) - 1
        self._ids: list[int] = []
        self._told = 0
        self.text = ""

    def take(self, token: int) -> bool:
        """True when a stop string is complete."""
        self._ids.append(token)
        if token == END:
            return False
        if self._echoes:
            whole = self._ids and self._ids[-1] not in NEXT_BYTE
            self.text = decoded(self._prompt + self._ids) if whole else self.text
        else:
            self.text = decoded(self._ids)
        for stop in self._stop:
            found = self.text.find(stop)
            if found >= 0:
                self.text = self.text[:found]
                self.stopped = stop
                return True
        return False

    def news(self, finished: bool) -> str:
        end = len(self.text) - (0 if finished else self._lag)
        if end <= self._told:
            return ""
        start, self._told = self._told, end
        return self.text[start:end]


@dataclass(eq=False)
class Server:
    """Implements `ModelClient`; `fate` is asked once for each request that is no probe."""

    fate: Callable[[ModelRequest], Fate] = lambda _: Fate()
    model: str = "m"
    token_s: float = 0.01
    prefill_s: float = 0.05
    able: Capabilities = ABLE
    down: bool = False
    max_running: int | None = None
    running: int = 0
    most_running: int = 0
    requests: list[ModelRequest] = field(default_factory=list)
    prefills: int = 0
    probes: int = 0
    tokens: int = 0
    closed: bool = False
    _breaking: set[asyncio.Event] = field(default_factory=set)

    def kill(self) -> None:
        """From now on it does not answer, and its streams break at their next token."""
        self.down = True
        for event in self._breaking:
            event.set()

    async def capabilities(self) -> Capabilities:
        return self.able

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self._check()
        if request.priority == 10**9:
            self.probes += 1
            await asyncio.sleep(self.token_s)
            self._check()
            yield Completion("x", "length")
            return
        self.requests.append(request)
        fate = self.fate(request)
        if fate.refuse:
            raise ModelUnavailable("refused")
        full = self.max_running is not None and self.running >= self.max_running
        if full or fate.overloaded_s is not None:
            raise ModelOverloaded("busy", retry_after_s=fate.overloaded_s)
        broken = asyncio.Event()
        self._breaking.add(broken)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            async for event in self._answer(request, fate, broken):
                yield event
        finally:
            self.running -= 1
            self._breaking.discard(broken)

    def _check(self) -> None:
        if self.closed:
            raise ModelUnavailable("the server's client is closed", retryable=False)
        if self.down:
            raise ModelUnavailable("down")

    async def _answer(
        self, request: ModelRequest, fate: Fate, broken: asyncio.Event
    ) -> AsyncGenerator[ModelEvent, None]:
        prompt = prompt_ids(request)
        await asyncio.sleep(self.prefill_s)
        self._check_stream(broken)
        self.prefills += 1
        yield Prefilled(tuple(prompt))
        text = Detokenizer(prompt, request.sampling.stop)
        limit = request.sampling.max_tokens
        if limit is None:
            # As vLLM: chat takes the rest of the context, text completion sixteen tokens.
            limit = 16 if request.prompt_token_ids else CONTEXT - len(prompt)
        ids: list[int] = []
        unsent: list[int] = []
        finish: FinishReason | None = None
        while finish is None:
            await asyncio.sleep(self.token_s)
            self._check_stream(broken)
            if len(ids) == fate.break_after_tokens:
                raise ModelUnavailable("the stream broke off")
            token = next_token(prompt + ids)
            ids.append(token)
            unsent.append(token)
            self.tokens += 1
            stops = token in request.sampling.stop_token_ids
            if stops or text.take(token) or token == END:
                finish = "stop"
            elif len(ids) == limit:
                finish = "length"
            if finish or len(unsent) >= fate.merge:
                logprobs = tuple(-1 / (1 + token) for token in unsent) if request.logprobs else ()
                yield TextDelta(text.news(finish is not None), tuple(unsent), logprobs)
                unsent = []
        if stops and fate.break_at_stop:
            raise ModelUnavailable("the stream broke off")
        logprobs = tuple(-1 / (1 + token) for token in ids) if request.logprobs else ()
        usage = Usage(len(prompt), len(ids), requests=1)
        yield Completion(
            text.text,
            finish,
            (),
            tuple(ids),
            logprobs,
            usage,
            self.model,
            stop=ids[-1] if stops else text.stopped,
        )

    def _check_stream(self, broken: asyncio.Event) -> None:
        if broken.is_set():
            raise ModelUnavailable("the connection broke")
        self._check()

    async def aclose(self) -> None:
        self.closed = True
        self.kill()
