"""The body of a chat completion request, as OpenAI's protocol has it. Knows no models.

Fields that are not here are ignored, as OpenAI does. Those of `UNSUPPORTED` are refused, for an
answer that ignores them would not be the answer that was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from weft.serving.gateway.problem import Refused, bad_request

Text = Annotated[str, Field(min_length=1, max_length=512)]
Count = Annotated[int, Field(ge=1)]

UNSUPPORTED: Mapping[str, tuple[object, ...]] = {
    "audio": (),
    "frequency_penalty": (0,),
    "function_call": (),
    "functions": (),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "parallel_tool_calls": (True,),
    "presence_penalty": (0,),
    "top_logprobs": (0,),
    "web_search_options": (),
}
"""Fields that change what is answered, and the values with which they do not. Null never does."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class ContentPart(_Part):
    """A piece of a message."""

    type: str
    text: str | None = None
    refusal: str | None = None

    @model_validator(mode="after")
    def _is_text(self) -> ContentPart:
        if self.type not in ("text", "refusal") or self.said is None:
            raise PydanticCustomError("content", "only text can be read here")
        return self

    @property
    def said(self) -> str | None:
        """Its text."""
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
    """One turn of the conversation."""

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
            return "".join(part.said or "" for part in self.content)
        return self.content or ""


class OfferedFunction(_Part):
    """A function that the model may call."""

    name: Text
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
    """The one tool that the model must call."""

    type: Literal["function"]
    function: ChosenFunction


class AnswerSchema(_Part):
    """A JSON Schema of the answer."""

    name: str = "answer"
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")


class AnswerFormat(_Part):
    """What the answer looks like."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: AnswerSchema | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> AnswerFormat:
        if self.type == "json_schema" and self.json_schema is None:
            raise PydanticCustomError("content", "`json_schema` is missing")
        return self


class StreamOptions(_Part):
    """What a stream holds beside the answer."""

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


def chat_body(raw: object) -> ChatBody:
    """The checked body. Raises: `Refused` with 400, which names the field."""
    if not isinstance(raw, dict):
        raise bad_request("the body is not a JSON object")
    try:
        return ChatBody.model_validate(raw)
    except ValidationError as error:
        raise _refused(error) from None


def _refused(error: ValidationError) -> Refused:
    # Where several forms are possible, what came closest has been followed deepest.
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


def further_fields(raw: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The fields of `raw` that a model knows beyond the protocol's.

    Raises: `Refused` with 400 for a field of `UNSUPPORTED` that it does not know.
    """
    for name, neutral in UNSUPPORTED.items():
        value = raw.get(name)
        if value is not None and value not in neutral and name not in known:
            raise bad_request(f"`{name}` is not supported by this model", name, "unsupported")
    return {name: raw[name] for name in known if raw.get(name) is not None}
