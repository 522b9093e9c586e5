"""Events of the Messages API as deltas and a completion."""

from __future__ import annotations

from typing import Any, Final

from weft.core.errors import ModelUnavailable
from weft.core.loggers import logger
from weft.core.ports.model import Delta
from weft.core.values import FinishReason
from weft.serving.providers.answer import PendingCall, ProviderAnswer, arguments_object, count
from weft.serving.providers.model import EventReader

_logger = logger("models")
_FINISHES: Final[dict[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refused",
}
_TEXTS: Final = ("text", "thinking")
"""Blocks that arrive in pieces of the text that they are named after."""


class MessageReader(EventReader):
    """Reads the events of one message: blocks one after the other, each of them in pieces."""

    def __init__(self, answer: ProviderAnswer) -> None:
        self._answer = answer
        self._calls: dict[int, PendingCall] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}
        self._input = 0
        self._cached = 0
        self._written = 0

    def read(self, event: Any) -> list[Delta]:
        match event.type:
            case "message_start":
                self._answer.model = event.message.model or self._answer.model
                self._count(event.message.usage)
            case "content_block_start":
                return self._begin(event.index, event.content_block)
            case "content_block_delta":
                return self._add(event.index, event.delta)
            case "content_block_stop":
                call = self._calls.get(event.index)
                return self._answer.end_call(call) if call is not None else []
            case "message_delta":
                self._count(event.usage)
                self._end(event.delta)
            case _:
                return []
        return []

    @property
    def blocks(self) -> list[Any]:
        calls = {call.id: call for call in self._answer.calls}
        found = []
        for index in sorted(self._blocks):
            block = dict(self._blocks[index])
            if block["type"] in _TEXTS:
                block[block["type"]] = "".join(self._pieces[index])
            if block["type"] == "tool_use":
                block["input"] = arguments_object(calls[block["id"]])
            found.append(block)
        # The API takes no empty text, and no thought that it did not sign.
        return [each for each in found if each.get("text") != "" and each.get("signature") != ""]

    def _begin(self, index: int, block: Any) -> list[Delta]:
        match block.type:
            case "text":
                self._blocks[index] = {"type": "text"}
                return self._text(index, block.text)
            case "thinking":
                self._blocks[index] = {"type": "thinking", "signature": ""}
                return self._thought(index, block.thinking)
            case "redacted_thinking":
                self._answer.thinks = True
                self._blocks[index] = {"type": "redacted_thinking", "data": block.data}
            case "tool_use":
                self._blocks[index] = {"type": "tool_use", "id": block.id, "name": block.name}
                self._calls[index], delta = self._answer.begin_call(block.id, block.name)
                return [delta]
            case other:
                raise ModelUnavailable(f"the server sent a block of the kind {other!s:.40}")
        return []

    def _add(self, index: int, delta: Any) -> list[Delta]:
        match delta.type:
            case "text_delta":
                return self._text(index, delta.text)
            case "thinking_delta":
                return self._thought(index, delta.thinking)
            case "signature_delta":
                self._blocks[index]["signature"] += delta.signature
            case "input_json_delta":
                return self._answer.add_arguments(self._calls[index], delta.partial_json)
            case other:
                _logger.info("%s sent a delta of the kind %.40r", self._answer.model, other)
        return []

    def _text(self, index: int, piece: str) -> list[Delta]:
        deltas = self._answer.text(piece)
        self._pieces.setdefault(index, []).append(piece)
        return deltas

    def _thought(self, index: int, piece: str) -> list[Delta]:
        deltas = self._answer.thought(piece)
        self._pieces.setdefault(index, []).append(piece)
        return deltas

    def _count(self, usage: Any) -> None:
        """Counts are cumulative; those of the prompt come in three parts."""
        if usage is None:
            return
        self._input = count(usage.input_tokens) or self._input
        self._cached = count(usage.cache_read_input_tokens) or self._cached
        self._written = count(usage.cache_creation_input_tokens) or self._written
        self._answer.prompt_tokens = self._input + self._cached + self._written
        self._answer.cached_tokens = self._cached
        self._answer.completion_tokens = count(usage.output_tokens)
        details = usage.output_tokens_details
        self._answer.reasoning_tokens = count(getattr(details, "thinking_tokens", 0)) or None

    def _end(self, delta: Any) -> None:
        reason = delta.stop_reason
        if reason is None:
            return
        if reason not in _FINISHES:
            _logger.info(
                "%s ended its answer for %.40r: it is complete", self._answer.model, reason
            )
        details = getattr(delta, "stop_details", None)
        refusal = getattr(details, "explanation", None) or getattr(details, "category", None)
        self._answer.end(_FINISHES.get(reason, "stop"), stop=delta.stop_sequence, refusal=refusal)
