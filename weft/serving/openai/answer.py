"""Folds the chunks of one streamed answer into model events; does no I/O."""

from __future__ import annotations

from pydantic import ValidationError

from weft.core.errors import ModelOutputError, ModelRequestError, ModelUnavailable
from weft.core.ports.model import ModelRequest, TextDelta, ToolCallDelta
from weft.core.values import Completion, FinishReason, Usage
from weft.serving.openai.chunk import Choice, Chunk, Delta, WireError, WireUsage
from weft.serving.openai.price import Price
from weft.serving.openai.toolcalls import ToolCalls
from weft.serving.structured import parse_output

_DONE = b"[DONE]"
_NOTHING = Delta()


class StreamError(Exception):
    """The server reported an error in the middle of a stream."""

    def __init__(self, error: WireError | str) -> None:
        wire = WireError(message=error) if isinstance(error, str) else error
        super().__init__(wire.message or "no reason given")
        self.status = wire.code if isinstance(wire.code, int) else 500


class Answer:
    """One answer while it arrives. `take` every payload in order, then ask for the `completion`.

    `done` is true once the server has said that nothing follows.
    """

    def __init__(self, request: ModelRequest, model: str, price: Price | None, limit: int) -> None:
        self._request = request
        self._model = model
        self._price = price
        self._limit = limit
        self._size = 0
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._token_ids: list[int] = []
        self._logprobs: list[float] = []
        self._calls = ToolCalls()
        self._finish: str | None = None
        self._usage: WireUsage | None = None
        self.done = False

    def take(self, payload: bytes) -> list[TextDelta | ToolCallDelta]:
        """The deltas in one event's data.

        Raises: `ModelUnavailable` when it is not what such servers send, `ModelOutputError` when
        the answer grows over its limit, `StreamError` when the server reports one.
        """
        if payload.startswith(_DONE):
            self.done = True
        if self.done:
            return []
        try:
            chunk = Chunk.model_validate_json(payload)
        except ValidationError as error:
            raise ModelUnavailable(
                f"the server sent what is no answer: {error.errors()[0]['msg']}",
                hint="does base_url point at an OpenAI-compatible server?",
            ) from None
        if chunk.error:
            raise StreamError(chunk.error)
        self._model = chunk.model or self._model
        self._usage = chunk.usage or self._usage
        ours = [choice for choice in chunk.choices if choice.index == 0]
        self._spend(1 + sum(map(_size, ours)))
        return [delta for choice in ours for delta in self._take(choice)]

    def finish(self) -> list[ToolCallDelta]:
        """Deltas that had to wait until the stream ended well.

        Raises: `ModelUnavailable` when it ended without saying that the answer is complete.
        """
        if self._finish is None and not self.done:
            raise ModelUnavailable("the stream ended before the answer was complete")
        return self._calls.finish()

    def completion(self) -> Completion:
        """The whole answer; call `finish` before.

        Raises: `ModelOutputError` when it does not fit the request's schema, or the model refused;
        `ModelUnavailable` when the server gave the answer up; `ModelRequestError` when a content
        filter cut it.
        """
        text, calls = "".join(self._text), self._calls.calls()
        finish = self._finish_reason(bool(calls))
        refusal = "".join(self._refusal)
        if refusal and not text:
            raise ModelOutputError(f"the model refused: {refusal[:200]}")
        if self._request.schema is not None and not calls:
            parse_output(text, self._request.schema)
        return Completion(
            text,
            finish,
            calls,
            tuple(self._token_ids),
            tuple(self._logprobs),
            self._spent(),
            self._model,
        )

    def _take(self, choice: Choice) -> list[TextDelta | ToolCallDelta]:
        part = choice.delta or choice.message or _NOTHING
        text = part.content or choice.text or ""
        ids = tuple(choice.token_ids or ())
        logprobs = choice.logprobs.values() if choice.logprobs else ()
        self._text.append(text)
        self._refusal.append(part.refusal or "")
        self._token_ids += ids
        self._logprobs += logprobs
        self._finish = choice.finish_reason or self._finish
        deltas: list[TextDelta | ToolCallDelta] = []
        if text or ids or logprobs:
            deltas.append(TextDelta(text, ids, logprobs))
        pieces = map(self._calls.take, part.tool_calls or ())
        deltas += [delta for delta in pieces if delta is not None]
        return deltas

    def _spend(self, size: int) -> None:
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
            case _:
                return "tool_calls" if calls else "stop"

    def _spent(self) -> Usage:
        wire = self._usage or WireUsage()
        completion = wire.completion_tokens
        completion = len(self._token_ids) if completion is None else completion
        details = wire.prompt_tokens_details
        cached = (details.cached_tokens or 0) if details else 0
        money = self._price.money(wire.prompt_tokens, completion, cached) if self._price else 0.0
        return Usage(wire.prompt_tokens, completion, cached, requests=1, money=money)


def _size(choice: Choice) -> int:
    """What keeping this part costs, in characters; also counts what has no text."""
    part = choice.delta or choice.message or _NOTHING
    size = len(part.content or choice.text or "") + len(part.refusal or "")
    size += len(choice.token_ids or ()) + (len(choice.logprobs.values()) if choice.logprobs else 0)
    for piece in part.tool_calls or ():
        size += 1 + len(piece.id or "")
        if piece.function:
            size += len(piece.function.name or "") + len(piece.function.arguments or "")
    return size
