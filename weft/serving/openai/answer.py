"""Assembles one streamed answer from its chunks, bounds it, and checks it against its schema."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from weft.core.errors import ModelOutputError, ModelRequestError, ModelUnavailable
from weft.core.loggers import logger
from weft.core.ports.model import Delta, ModelRequest, Prefilled
from weft.core.values import Completion, FinishReason, JsonSchema, Speculated, Usage
from weft.serving.openai.chunk import (
    Chunk,
    WireChoice,
    WireDelta,
    WireDrafting,
    WireError,
    WireUsage,
)
from weft.serving.openai.endpoint import Price
from weft.serving.openai.output import StreamedOutput, ToolCalls
from weft.serving.text import FoundCall, Piece, Splitter, answer_and_thought
from weft.validation import SchemaRefused, compile_schema_async

_DEEPEST = 64


def speculated(wire: WireDrafting | None, method: str, tokens: int) -> Speculated | None:
    """Counts of drafting with `method` for an answer of `tokens`; None without drafts or counts.

    The server does not count a pass without a draft, which wrote one token. The first token came
    with the prompt. Drafts may be accepted beyond the end of an answer, which is then cut.
    """
    if wire is None or not wire.num_spec_steps:
        return None
    accepted = min(wire.num_accepted_draft_tokens, wire.num_draft_tokens)
    forwards = max(wire.num_spec_steps, tokens - 1 - accepted)
    steps = list(zip(wire.per_step_drafted or (), wire.per_step_accepted or (), strict=False))
    deepest = min(max((drafted for drafted, _ in steps), default=0), _DEEPEST)
    return Speculated(
        method,
        wire.num_draft_tokens,
        accepted,
        forwards,
        tuple(sum(taken >= d and drafted > d for drafted, taken in steps) for d in range(deepest)),
        tuple(sum(taken > d for _, taken in steps) for d in range(deepest)),
    )


_LONGEST_TOKEN_CHARS: Final = 512
"""No known vocabulary has a longer token; the longest are runs of blanks."""
_ALLOWANCE: Final = 16
_ALLOWED_SHARE: Final = 8
_EMPTY_DELTA: Final = WireDelta()


class TokenLimit:
    """Counts the tokens of one answer against `max_tokens`; None is no limit.

    Token ids are exact. Without ids, each piece of the stream counts as one token, and as more
    where its text is too long for one. As servers may split a token into several pieces, the answer
    may then exceed the limit by 16 tokens and an eighth.
    """

    def __init__(self, max_tokens: int | None) -> None:
        self._max = max_tokens
        self._ids = 0
        self._pieces = 0
        self._chars = 0

    def add(self, choice: WireChoice) -> None:
        """Count one part of the answer."""
        part = choice.delta or choice.message or _EMPTY_DELTA
        calls = [piece.function for piece in part.pieces if piece.function]
        chars = len(part.content or choice.text or "") + len(part.thought)
        chars += len(part.refusal or "") + sum(len(call.arguments or "") for call in calls)
        self._ids += len(choice.token_ids or ())
        self._chars += chars
        self._pieces += chars > 0

    @property
    def tokens(self) -> int:
        """Tokens so far, exact where the server sends ids, else an estimate."""
        return max(self._ids or self._pieces, -(-self._chars // _LONGEST_TOKEN_CHARS))

    @property
    def exceeded(self) -> bool:
        """True when the server has passed the limit without stopping."""
        if self._max is None:
            return False
        allowance = 0 if self._ids else _ALLOWANCE + self._max // _ALLOWED_SHARE
        return self.tokens > self._max + allowance


_logger = logger("models")
_DONE = b"[DONE]"
_WRONG_URL = "does base_url point at an OpenAI-compatible server?"
_COMPLETE = frozenset({"stop", "tool_calls", "function_call", "eos", "eos_token", "stop_sequence"})
"""Finish reasons of an answer that the model itself ended, TGI's included."""
_NOTHING = WireDelta()


class StreamError(Exception):
    """The server reported an error in the middle of a stream."""

    def __init__(self, error: WireError | str) -> None:
        wire = WireError(message=error) if isinstance(error, str) else error
        super().__init__(wire.message or "no reason given")
        self.status = wire.code if isinstance(wire.code, int) else 500


class StreamedAnswer:
    """One answer while it arrives. Call `take` with every payload in order, then `completion`.

    `splitter` separates reasoning and calls from the text. `decoder` names the server's decoder in
    reports. `unmarked`: nothing is known of the form of thoughts. Where the whole text has a
    `<think>` thought before the answer, with or without its first tag, it becomes the reasoning.
    """

    def __init__(
        self,
        request: ModelRequest,
        model: str,
        price: Price | None,
        limit: int,
        splitter: Splitter | None = None,
        *,
        decoder: str = "speculative",
        unmarked: bool = False,
    ) -> None:
        self._request = request
        self._model = model
        self._price = price
        self._limit = limit
        self._size = 0
        self._output = StreamedOutput(splitter or Splitter(), request.top_logprobs)
        self._refusal: list[str] = []
        self._calls = ToolCalls()
        self._finish: str | None = None
        self._stop: str | int | None = None
        self._usage: WireUsage | None = None
        self._decoder = decoder
        self._unmarked = unmarked
        self._drafting: WireDrafting | None = None
        self._prefilled = False
        self._begun = False
        self._tokens = TokenLimit(request.sampling.most_tokens)
        self.done = False
        self.stopped = False

    def take(self, payload: bytes) -> list[Prefilled | Delta]:
        """The events of one payload.

        Raises: `ModelUnavailable` for malformed data; `ModelOutputError` when the answer exceeds
        its limit; `StreamError` when the server reports an error.
        """
        if payload.startswith(_DONE):
            self.done = True
        if self.done:
            return []
        try:
            chunk = Chunk.model_validate_json(payload)
        except ValidationError as error:
            what = f"the server sent what is no answer: {error.errors()[0]['msg']}"
            raise ModelUnavailable(what, hint=_WRONG_URL) from None
        self._begun = True
        if chunk.error:
            raise StreamError(chunk.error)
        self._model = chunk.model or self._model
        self._usage = chunk.usage or self._usage
        if chunk.metrics is not None:
            self._drafting = chunk.metrics.speculative_decoding or self._drafting
        ours = [choice for choice in chunk.choices if choice.index == 0]
        self._grow(1 + sum(map(_size, ours)))
        events = self._prefill(chunk.prompt)
        for choice in ours:
            events += self._take(choice)
            self._tokens.add(choice)
        if self._finish is None and self._tokens.exceeded:
            self._finish, self.stopped = "length", True
        return events

    def finish(self) -> list[Delta]:
        """Deltas that had to wait for the end of the stream.

        Raises: `ModelUnavailable` when the stream ended before the answer was complete.
        """
        if not self._begun:
            raise ModelUnavailable("the server answered, but not with an answer", hint=_WRONG_URL)
        if self._finish is None and not self.done:
            raise ModelUnavailable("the stream ended before the answer was complete")
        return [*self._deltas(self._output.end()), *self._calls.finish()]

    def completion(self) -> Completion:
        """The whole answer, after `finish`. The caller checks it against the request's schema.

        Raises: `ModelOutputError` when a required tool call is missing, or the model refused;
        `ModelUnavailable` when the server aborted the answer; `ModelRequestError` when a content
        filter cut it.
        """
        output, calls = self._output, self._calls.calls()
        text, reasoning = output.text, output.reasoning
        if self._unmarked and not reasoning:
            text, reasoning = answer_and_thought(text)
        finish = self._finish_reason(bool(calls))
        refusal = "".join(self._refusal)
        if refusal and not text:
            raise ModelOutputError(f"the model refused: {refusal[:200]}")
        if self._request.tools and self._request.tool_choice == "required" and not calls:
            raise ModelOutputError("the model called no tool, although a call was required")
        usage = self.usage
        return Completion(
            text,
            finish,
            calls,
            output.token_ids,
            output.logprobs,
            usage,
            self._model,
            reasoning,
            self._stopped_by(),
            output.top_logprobs,
            speculated(self._drafting, self._decoder, usage.completion_tokens),
        )

    @property
    def counted(self) -> bool:
        """Whether the server has reported the usage of the answer."""
        return self._usage is not None

    def cut_at(self, completion: Completion) -> int | None:
        """How many tokens `completion` had when max_tokens ended it; None for other ends."""
        if completion.finish_reason != "length":
            return None
        reported = None if self._usage is None else self._usage.completion_tokens
        return reported or self._request.sampling.most_tokens or completion.usage.completion_tokens

    def _prefill(self, prompt: list[int] | None) -> list[Prefilled | Delta]:
        if prompt is None or self._prefilled:
            return []
        self._prefilled = True
        return [Prefilled(tuple(prompt))]

    def _take(self, choice: WireChoice) -> list[Delta]:
        part = choice.delta or choice.message or _NOTHING
        self._refusal.append(part.refusal or "")
        self._finish = choice.finish_reason or self._finish
        for stop in (choice.stop_reason, choice.matched_stop):
            self._stop = self._stop if stop is None else stop
        deltas = self._deltas(self._output.take(choice))
        pieces = map(self._calls.take, part.pieces)
        return deltas + [delta for delta in pieces if delta is not None]

    def _deltas(self, pieces: list[Piece]) -> list[Delta]:
        return [
            self._calls.add(piece.name, piece.arguments) if isinstance(piece, FoundCall) else piece
            for piece in pieces
        ]

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise ModelOutputError(
                f"the answer is larger than {self._limit:,} characters",
                retryable=False,
                hint="set a smaller max_tokens, or a larger max_answer_chars on the client",
            )

    def _finish_reason(self, calls: bool) -> FinishReason:
        match self._finish:
            case "abort" | "error":
                raise ModelUnavailable(f"the server gave the answer up ({self._finish})")
            case "content_filter":
                raise ModelRequestError("the server's content filter stopped the answer")
            case "length":
                return "length"
            case None if not calls:
                _logger.info("%s did not say why its answer ended: it is cut off", self._model)
                return "length"
            case reason:
                if reason is not None and reason not in _COMPLETE:
                    _logger.info(
                        "%s ended its answer for %.40r: it is complete", self._model, reason
                    )
                return "tool_calls" if calls else "stop"

    def _stopped_by(self) -> str | int | None:
        """The stop text or stop token of the request that ended the answer.

        Servers also report the model's own end tokens there, and report none for a token that is
        both such an end and in the request.
        """
        if self._finish != "stop":
            return None
        sampling, last = self._request.sampling, self._output.token_ids[-1:]
        if self._stop in (*sampling.stop, *sampling.stop_token_ids):
            return self._stop
        return last[0] if last and last[0] in sampling.stop_token_ids else None

    @property
    def usage(self) -> Usage:
        """Usage of the answer, as the server reports it at the end."""
        wire = self._usage or WireUsage()
        completion = wire.completion_tokens
        completion = self._tokens.tokens if completion is None else completion
        details = wire.prompt_tokens_details
        cached = (details.cached_tokens or 0) if details else 0
        money = self._price.money(wire.prompt_tokens, completion, cached) if self._price else 0.0
        return Usage(
            wire.prompt_tokens,
            completion,
            cached,
            requests=1,
            money=money,
            reasoning_tokens=self._reasoning_tokens(wire, completion),
        )

    def _reasoning_tokens(self, wire: WireUsage, completion: int) -> int | None:
        """Tokens of the reasoning: the server's count, or else those of the ids; None: unknown.

        Some servers report 0 whatever they send: that is no count beside a thought.
        """
        details = wire.completion_tokens_details
        counted = (details.reasoning_tokens if details else None) or self._output.reasoning_tokens
        return None if counted is None else min(completion, counted)


def _size(choice: WireChoice) -> int:
    """Memory cost of this part in characters; parts without text cost something too."""
    part = choice.delta or choice.message or _NOTHING
    size = len(part.content or choice.text or "") + len(part.refusal or "") + len(part.thought)
    size += len(choice.token_ids or ()) + (choice.logprobs.size if choice.logprobs else 0)
    for piece in part.pieces:
        size += 1 + len(piece.id or "")
        if piece.function:
            size += len(piece.function.name or "") + len(piece.function.arguments or "")
    return size


async def check_schema(schema: JsonSchema) -> None:
    """Raises: `ModelRequestError` for a schema that cannot be compiled."""
    try:
        await compile_schema_async(schema)
    except SchemaRefused as error:
        raise ModelRequestError(f"the output schema is wrong: {error}") from None
