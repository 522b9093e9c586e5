"""Chunks of a streamed generateContent as deltas and a completion."""

from __future__ import annotations

import json
import uuid
from itertools import groupby
from typing import Any, Final

from weft.core.errors import ModelOutputError, ModelUnavailable
from weft.core.loggers import logger
from weft.core.ports.model import Delta
from weft.serving.providers.answer import ProviderAnswer, count
from weft.serving.providers.gemini.body import OWN_CALL_ID
from weft.serving.providers.model import EventReader

_logger = logger("models")
_REFUSED: Final = frozenset(
    {
        *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
        *("IMAGE_SAFETY", "MODEL_ARMOR"),
    }
)
_MALFORMED: Final = frozenset(
    {
        *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"),
        *("MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE"),
    }
)
_GIVEN_UP: Final = frozenset({"OTHER", "FINISH_REASON_UNSPECIFIED"})


class ChunkReader(EventReader):
    """Reads the chunks of one answer: parts of texts, thoughts and whole function calls."""

    def __init__(self, answer: ProviderAnswer) -> None:
        self._answer = answer
        self._parts: list[Any] = []

    def read(self, event: Any) -> list[Delta]:
        self._answer.model = event.model_version or self._answer.model
        self._count(event.usage_metadata)
        deltas: list[Delta] = []
        for candidate in (event.candidates or ())[:1]:
            for part in (candidate.content.parts if candidate.content else None) or ():
                deltas += self._part(part)
            if candidate.finish_reason is not None:
                self._end(candidate)
        blocked = event.prompt_feedback
        if blocked is not None and blocked.block_reason is not None:
            reason = blocked.block_reason_message or blocked.block_reason.value
            self._answer.end("refused", refusal=reason)
        return deltas

    @property
    def blocks(self) -> list[Any]:
        return [_joined(list(group)) for _, group in groupby(self._parts, _kind)]

    def _part(self, part: Any) -> list[Delta]:
        self._parts.append(part)
        if part.function_call is not None:
            return self._call(part.function_call)
        if part.text is not None:
            return self._answer.thought(part.text) if part.thought else self._answer.text(part.text)
        if part.thought_signature is None:
            raise ModelOutputError(
                "the model answered with something besides text and calls", retryable=False
            )
        return []

    def _call(self, told: Any) -> list[Delta]:
        call_id = told.id or f"{OWN_CALL_ID}{uuid.uuid4().hex}"
        call, begun = self._answer.begin_call(call_id, told.name)
        arguments = json.dumps(told.args or {}, ensure_ascii=False)
        return [begun, *self._answer.add_arguments(call, arguments)]

    def _count(self, usage: Any) -> None:
        """Counts are cumulative; thoughts and the text that is shown are counted apart."""
        if usage is None:
            return
        answer = self._answer
        of_tools = count(usage.tool_use_prompt_token_count)
        answer.prompt_tokens = count(usage.prompt_token_count) + of_tools
        answer.cached_tokens = count(usage.cached_content_token_count)
        thought = count(usage.thoughts_token_count)
        answer.reasoning_tokens = thought or None
        answer.completion_tokens = count(usage.candidates_token_count) + thought

    def _end(self, candidate: Any) -> None:
        reason = candidate.finish_reason.value
        why = f"{reason}: {candidate.finish_message or 'no reason given'}"[:300]
        if reason in _MALFORMED:
            raise ModelOutputError(f"the model's answer is malformed ({why})")
        if reason in _GIVEN_UP:
            raise ModelUnavailable(f"the server gave the answer up ({why})")
        if reason in _REFUSED:
            self._answer.end("refused", refusal=candidate.finish_message or reason)
            return
        if reason not in {"STOP", "MAX_TOKENS"}:
            _logger.info(
                "%s ended its answer for %.40r: it is complete", self._answer.model, reason
            )
        self._answer.end("length" if reason == "MAX_TOKENS" else "stop")


def _kind(part: Any) -> object:
    """Equal for pieces of one text; anything else, and what is signed, is a part of its own."""
    plain = part.text is not None and part.thought_signature is None
    return bool(part.thought) if plain else id(part)


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return parts[0].model_copy(update={"text": "".join(part.text for part in parts)})
