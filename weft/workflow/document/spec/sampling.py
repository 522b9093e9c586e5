"""Sampling settings that nodes, agents and strategies share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    field_validator,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from weft.serving.extra_arguments import RESERVED_FIELDS
from weft.workflow.document.spec.fields import SpecPart, Value, optional
from weft.workflow.document.spec.settings import Positive


def _token_id(value: object) -> object:
    """A token id as text, as YAML reads `42: -5` with a number as key."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


TokenId = Annotated[str, BeforeValidator(_token_id), StringConstraints(pattern="^[0-9]{1,9}$")]
Bias = Annotated[float, Field(ge=-100, le=100)]


def shared_last(schema: dict[str, Any]) -> None:
    """Puts the fields of `SamplingPart` after the others in a JSON Schema."""
    fields = schema["properties"]
    shared = {name: fields.pop(name) for name in SamplingPart.model_fields}
    fields.update(shared)


class SamplingPart(SpecPart):
    """Sampling settings besides length, temperature and seed, whose meaning differs."""

    model_config = ConfigDict(json_schema_extra=shared_last)

    top_p: float | None = optional("Nucleus sampling.", gt=0, le=1)
    top_k: Positive | None = optional("Only the k likeliest tokens.")
    min_p: float | None = optional(
        "Only tokens with at least this part of the likeliest one's probability.", ge=0, le=1
    )
    presence_penalty: float | None = optional("Penalty on tokens that occurred.", ge=-2, le=2)
    frequency_penalty: float | None = optional(
        "Penalty on tokens for each time that they occurred.", ge=-2, le=2
    )
    repetition_penalty: float | None = optional(
        "Divides the logits of tokens that occurred, in the prompt too; 1: none.", gt=0, le=10
    )
    logit_bias: dict[TokenId, Bias] | None = optional(
        "What is added to the logits of tokens, by token id."
    )
    reasoning_effort: str | None = optional(
        "How much a reasoning model thinks: `low`, `medium`, ...; the server knows the names.",
        min_length=1,
    )
    thinking_tokens: Annotated[int, Field(ge=0)] | None = optional(
        "The longest thought before an answer, in tokens; `max_tokens` then bounds the answer "
        "alone. 0: no thought."
    )
    extra_body: dict[str, Value] | None = optional(
        "Further fields of the request's body, for servers. They are sent as they are, and may not "
        "be fields that weft sets."
    )

    @model_serializer(mode="wrap")
    def _own_first(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Puts these fields after the others."""
        fields: dict[str, Any] = dump(self)
        return dict(sorted(fields.items(), key=lambda field: field[0] in SamplingPart.model_fields))

    @field_validator("extra_body")
    @classmethod
    def _of_servers(cls, extra: dict[str, Any] | None) -> dict[str, Any] | None:
        taken = sorted((extra or {}).keys() & RESERVED_FIELDS)
        if taken:
            why = {"key": taken[0], "hint": "weft sets it itself", "where": [taken[0]]}
            raise PydanticCustomError("origin", "`{key}` does not go with `extra_body`", why)
        return extra
