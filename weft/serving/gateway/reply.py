"""Answers in OpenAI's form, and the ASGI response that sends them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.types import Send

from weft.core.errors import ModelUnavailable
from weft.core.ports import (
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from weft.core.questions import AskingCompletion
from weft.core.values import Completion, Usage
from weft.serving.gateway.problem import ApiProblem
from weft.serving.text.prompt import wire_calls

Json = dict[str, Any]


class ReplyForm:
    """The form of the answer to one request. `created` is in Unix seconds."""

    def __init__(self, reply_id: str, model: str, created: int) -> None:
        self._id = reply_id
        self._model = model
        self._created = created

    def whole(self, choices: Sequence[Completion]) -> Json:
        """All choices at once. Raises: `ModelUnavailable` for a choice that was cut off."""
        return {
            **self._head("chat.completion"),
            "choices": [_choice(index, answer) for index, answer in enumerate(choices)],
            "usage": usage(choices),
        }

    def chunk(self, index: int, delta: Mapping[str, Any], end: Completion | None = None) -> Json:
        """A piece of choice `index`; with its `end` the last one. Raises: as `whole`."""
        finish = None if end is None else finish_of(end)
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        if end is not None:
            choice |= _stop_of(end)
        return {**self._head("chat.completion.chunk"), "choices": [choice]}

    def usage_chunk(self, choices: Sequence[Completion]) -> Json:
        """The last chunk of a stream whose client asked for the usage."""
        return {**self._head("chat.completion.chunk"), "choices": [], "usage": usage(choices)}

    def _head(self, kind: str) -> Json:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}


def delta_of(event: ModelEvent) -> Json | None:
    """The delta of a chunk for an event; None for an event that clients do not get."""
    match event:
        case TextDelta(text=text):
            return {"content": text} if text else None
        case ReasoningDelta(text=text):
            return {"reasoning_content": text} if text else None
        case ToolCallDelta():
            function: Json = {"arguments": event.arguments}
            call: Json = {"index": event.index, "function": function}
            if event.id:
                call |= {"id": event.id, "type": "function"}
            if event.name:
                function["name"] = event.name
            return {"tool_calls": [call]}
        case _:
            return None


def finish_of(answer: Completion) -> str:
    """The finish reason in OpenAI's terms. Raises: `ModelUnavailable` for a cut-off answer."""
    match answer.finish_reason:
        case "cancelled" | "error":
            raise ModelUnavailable(f"the answer of {answer.model} ended as {answer.finish_reason}")
        case "refused":
            return "content_filter"
        case reason:
            return reason


def usage(choices: Sequence[Completion]) -> Json:
    """The usage of all choices together; for diffusion models with their forward passes."""
    total = sum((choice.usage for choice in choices), Usage())
    thought = total.reasoning_tokens
    return {
        "prompt_tokens": total.prompt_tokens,
        "completion_tokens": total.completion_tokens,
        "total_tokens": total.tokens,
        "prompt_tokens_details": {"cached_tokens": total.cached_tokens},
        **({} if thought is None else {"completion_tokens_details": {"reasoning_tokens": thought}}),
        **_forwards(choices),
    }


def _forwards(choices: Sequence[Completion]) -> Json:
    """Fields beyond OpenAI's, only for models that filled in several tokens per pass."""
    denoised = [choice.denoised for choice in choices if choice.denoised is not None]
    forwards = sum(each.forwards for each in denoised)
    if not forwards:
        return {}
    return {
        "forwards": forwards,
        "tokens_per_forward": sum(each.kept for each in denoised) / forwards,
    }


def _choice(index: int, answer: Completion) -> Json:
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls:
        message["content"] = answer.text or None
        message["tool_calls"] = wire_calls(answer.tool_calls)
    return {
        "index": index,
        "message": message,
        "logprobs": None,
        "finish_reason": finish_of(answer),
        **_stop_of(answer),
    }


def _stop_of(answer: Completion) -> Json:
    """Why it ended, beyond OpenAI's fields: a stop text or token, as in vLLM, or questions."""
    stop: Json = {} if answer.stop is None else {"stop_reason": answer.stop}
    if isinstance(answer, AskingCompletion):
        stop["asking"] = {"run": answer.run or None, "questions": list(answer.questions)}
    return stop


_EVENT_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # a proxy in between must not collect the pieces
}


class GatewayResponse:
    """One response, over ASGI."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._streaming = False
        self._complete = False

    @property
    def complete(self) -> bool:
        """Whether its last piece has been sent."""
        return self._complete

    async def whole(
        self, value: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """One JSON document."""
        body = _encoded(value)
        length = {"content-type": "application/json", "content-length": str(len(body))}
        await self._start(status, {**length, **(headers or {})})
        await self._piece(body, more=False)

    async def event(self, value: object) -> None:
        """One event of a stream."""
        await self._begin()
        await self._piece(b"data: " + _encoded(value) + b"\n\n")

    async def silence(self) -> None:
        """Send a comment, so that clients do not take silence for a broken connection."""
        await self._begin()
        await self._piece(b": keep-alive\n\n")

    async def end(self) -> None:
        """The regular end of a stream."""
        await self._piece(b"data: [DONE]\n\n", more=False)

    async def fail(self, problem: ApiProblem) -> None:
        """Send the problem: as the response, or as the last event of a stream that has begun.

        Where neither is possible, the server closes the connection.
        """
        if not self._begun:
            await self.whole(problem.body(), problem.status, problem.headers())
        elif self._streaming and not self._complete:
            await self._piece(b"data: " + _encoded(problem.body()) + b"\n\n", more=False)

    async def _begin(self) -> None:
        if not self._streaming:
            self._streaming = True
            await self._start(200, _EVENT_STREAM)

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self._begun = True
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _piece(self, body: bytes, more: bool = True) -> None:
        self._complete = not more
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _encoded(value: object) -> bytes:
    # A model's text may contain a lone surrogate, which has no UTF-8 encoding.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
