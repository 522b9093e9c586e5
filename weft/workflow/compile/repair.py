"""Asks a model again for an answer that did not fit, with that answer and the error."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from weft.core.errors import ModelOutputError
from weft.core.events import jsonable
from weft.core.generated_text import without_thought
from weft.core.ports import ModelRequest
from weft.core.values import Completion, Message

_MOST_ANSWER_CHARS: Final = 16_000
_MOST_SCHEMA_CHARS: Final = 8_000
_NO_TEXT: Final = "(nothing)"


def with_error(
    request: ModelRequest, completion: Completion, error: ModelOutputError
) -> ModelRequest:
    """`request` for another answer than `completion`, which `error` says is wrong.

    Calls of tools get the error as their result. The thought before the answer is left out, and of
    a long answer the end.
    """
    text = without_thought(completion.text).strip()[:_MOST_ANSWER_CHARS]
    said = Message("assistant", text or _NO_TEXT, completion.tool_calls)
    wrong = f"Your answer cannot be used: {error.message}."
    if completion.tool_calls:
        text = f"{wrong} Call again."
        after = [Message("tool", text, tool_call_id=call.id) for call in completion.tool_calls]
    else:
        after = [Message("user", f"{wrong} {_wanted(request)}")]
    return replace(request, messages=(*request.messages, said, *after))


def _wanted(request: ModelRequest) -> str:
    if request.schema is None:
        return "Answer again."
    again = "Answer again, with JSON only"
    schema = json.dumps(request.schema, ensure_ascii=False, default=jsonable)
    return f"{again}." if len(schema) > _MOST_SCHEMA_CHARS else f"{again}, of this schema: {schema}"
