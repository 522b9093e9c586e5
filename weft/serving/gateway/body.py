"""The body of a chat completion request in OpenAI's protocol.

A field that `ChatBody` does not have is passed on to a model that honours it, is known to change no
answer, or is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from weft.serving.gateway.problem import RequestRefused, bad_request

Text = Annotated[str, Field(min_length=1, max_length=512)]
Count = Annotated[int, Field(ge=1)]
ToolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")]
_MAX_PARTS = 10_000
"""The most pieces of content and tool calls in all messages together."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class ContentPart(_Part):
    """A piece of a message."""

    type: str
    text: str | None = None
    refusal: str | None = None

    @model_validator(mode="after")
    def _is_text(self) -> ContentPart:
        if self.type not in ("text", "refusal") or self.content is None:
            raise PydanticCustomError("content", "only text can be read here")
        return self

    @property
    def content(self) -> str | None:
        """The text of the piece."""
        return self.text if self.type == "text" else self.refusal


class CalledFunction(_Part):
    """The function of a call; `arguments` is JSON text."""

    name: Text
    arguments: str


class MessageToolCall(_Part):
    """A call that the assistant asked for earlier."""

    id: Text
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(_Part):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[ContentPart] | None = None
    tool_calls: list[MessageToolCall] | None = None
    tool_call_id: Text | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> ChatMessage:
        if self.content is None and self.role != "assistant":
            raise PydanticCustomError("content", "it has no content")
        if self.tool_calls and self.role != "assistant":
            raise PydanticCustomError("content", "only the assistant calls tools")
        if (self.role == "tool") != (self.tool_call_id is not None):
            raise PydanticCustomError("content", "`tool_call_id` belongs to the role tool")
        return self

    @property
    def text(self) -> str:
        """The content as one text."""
        if isinstance(self.content, list):
            return "".join(part.content or "" for part in self.content)
        return self.content or ""


class OfferedFunction(_Part):
    """A function that the model may call."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None


class OfferedTool(_Part):
    """A tool that the model may call."""

    type: Literal["function"]
    function: OfferedFunction


class ChosenFunction(_Part):
    """The name of a function."""

    name: Text


class ChosenTool(_Part):
    """The tool that the model must call."""

    type: Literal["function"]
    function: ChosenFunction


class AnswerSchema(_Part):
    """A JSON Schema of the answer."""

    name: str = "answer"
    json_schema: dict[str, Any] = Field(alias="schema")


class AnswerFormat(_Part):
    """The format of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: AnswerSchema | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> AnswerFormat:
        if self.type == "json_schema" and self.json_schema is None:
            raise PydanticCustomError("content", "`json_schema` is missing")
        return self


class StreamOptions(_Part):
    """What a stream contains in addition to the answer."""

    include_usage: bool | None = None


class ChatBody(_Part):
    """The request."""

    model: Text
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Count | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Count | None = None
    stop: Text | Annotated[list[Text], Field(max_length=16)] | None = None
    stop_token_ids: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=64)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    decode: Text | None = None
    user: str | None = None
    tools: Annotated[list[OfferedTool], Field(max_length=256)] | None = None
    tool_choice: Literal["auto", "none", "required"] | ChosenTool | None = None
    response_format: AnswerFormat | None = None


def chat_body(raw: object, most_messages: int | None = None) -> ChatBody:
    """The checked body. Raises: `RequestRefused` with 400, which names the field."""
    if not isinstance(raw, dict):
        raise bad_request("the body is not a JSON object")
    _check_counts(raw.get("messages"), most_messages)
    try:
        return ChatBody.model_validate(raw)
    except ValidationError as error:
        raise _refused(error) from None


def _check_counts(messages: object, most_messages: int | None) -> None:
    """Refuse what would take long to read before it is read."""
    if not isinstance(messages, list):
        return
    if most_messages is not None and len(messages) > most_messages:
        raise bad_request(f"more than {most_messages:,} messages", "messages")
    if sum(_parts(messages)) > _MAX_PARTS:
        raise bad_request(f"messages of more than {_MAX_PARTS:,} parts", "messages")


def _parts(messages: list[Any]) -> Iterator[int]:
    for message in messages:
        for field in ("content", "tool_calls") if isinstance(message, dict) else ():
            found = message.get(field)
            yield len(found) if isinstance(found, list) else 0


def _refused(error: ValidationError) -> RequestRefused:
    # Of several possible forms, the error with the deepest path belongs to the closest one.
    first = max(
        error.errors(include_url=False, include_input=False), key=lambda found: len(found["loc"])
    )
    param = ""
    for step in first["loc"]:
        if isinstance(step, int):
            param += f"[{step}]"
        elif step.isidentifier() and step.islower() and step != "str":
            param += f".{step}" if param else step
    return bad_request(f"`{param}`: {first['msg']}", param or None, "invalid_value")


WITHOUT_EFFECT: Final = frozenset(
    (
        *("user", "safety_identifier", "metadata", "store", "service_tier", "prediction"),
        *("prompt_cache_key", "prompt_cache_retention", "cache_salt", "request_id"),
    )
)
"""Fields about the client, billing and caches: they change no answer, whatever their value."""

NEUTRAL: Final[Mapping[str, tuple[object, ...]]] = {
    "add_generation_prompt": (True,),
    "bad_words": ([],),
    "best_of": (1,),
    "chat_template_kwargs": ({},),
    "continue_final_message": (False,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "ignore_eos": (False,),
    "include_stop_str_in_output": (False,),
    "length_penalty": (1,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "min_p": (0,),
    "min_tokens": (0,),
    "modalities": (["text"],),
    "parallel_tool_calls": (True,),
    "presence_penalty": (0,),
    "priority": (0,),
    "repetition_penalty": (1,),
    "return_token_ids": (False,),
    "skip_special_tokens": (True,),
    "top_logprobs": (0,),
    "use_beam_search": (False,),
    "verbosity": ("medium",),
}
"""Values with which fields change nothing. Null never changes anything."""

_HINTS: Final[Mapping[str, str]] = {
    "guided_json": "; ask for a schema in `response_format`",
    "structured_outputs": "; ask for a schema in `response_format`",
    "functions": "; offer them in `tools`",
    "function_call": "; say it in `tool_choice`",
}
_MAX_NAME: Final = 80


def further_fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `raw` that may change the answer and that `ChatBody` does not have."""
    return {
        name: value
        for name, value in raw.items()
        if value is not None
        and name not in ChatBody.model_fields
        and name not in WITHOUT_EFFECT
        and not _is_neutral(name, value)
    }


def check_honoured(fields: Mapping[str, Any], honoured: frozenset[str]) -> None:
    """Raises: `RequestRefused` with 400 for the first field that the model does not honour."""
    for name in fields:
        if name not in honoured:
            shown = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}..."
            text = f"`{shown}` is not supported by this model{_HINTS.get(name, '')}"
            raise bad_request(text, shown, "unsupported")


def _is_neutral(name: str, value: object) -> bool:
    """Whether the value changes nothing; True and 1 are different values here."""
    return any(
        value == neutral and isinstance(value, bool) == isinstance(neutral, bool)
        for neutral in NEUTRAL.get(name, ())
    )
