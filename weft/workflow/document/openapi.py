"""An OpenAPI document as a source of tools, as a workflow declares it. Reads no such document."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer
from pydantic_core import PydanticCustomError

from weft.core.ids import is_name
from weft.workflow.document.part import Name, Part
from weft.workflow.document.quantity import Duration, Size

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""The name of an environment variable."""


def _expand_operations(value: object) -> object:
    texts = value.values() if isinstance(value, dict) else value
    if not isinstance(texts, Collection) or isinstance(texts, str):
        raise PydanticCustomError("name", "`operations` must be a list, or names with operations")
    for text in texts:
        if not isinstance(text, str) or not text:
            said = {"text": repr(text)[:60]}
            raise PydanticCustomError("name", "{text} is no operation: quote its name", said)
    for name in value if isinstance(value, dict) else ():
        if not isinstance(name, str) or not is_name(name):
            said = {"text": repr(name)[:60]}
            raise PydanticCustomError("name", "{text} cannot be the name of a tool", said)
    return value


Operations = Annotated[
    list[str] | dict[str, str],
    BeforeValidator(
        _expand_operations,
        json_schema_input_type=Annotated[list[str], Field(min_length=1)] | dict[Name, str],
    ),
]
"""A list of operations, or a mapping that gives them names."""

AuthEnv = Annotated[
    dict[str, Variable],
    BeforeValidator(
        lambda value: {"": value} if isinstance(value, str) else value,
        json_schema_input_type=Variable | dict[str, Variable],
    ),
    PlainSerializer(lambda names: names.get("", names)),
]
"""The variable for each security scheme; under "" the one that serves for any."""


class OpenApiUse(Part):
    """Operations of an HTTP interface. Nothing is callable that is not listed."""

    document: str = Field(description="The OpenAPI file, beside the workflow.", min_length=1)
    operations: Operations = Field(
        description="By `operationId`, or as `GET /pets/{id}`; a mapping gives names to them."
    )
    base_url: str | None = Field(
        default=None, description="Where the interface is; else where its document says."
    )
    auth_env: AuthEnv | None = Field(
        default=None,
        description="The environment variable that holds the key, or one for each security scheme.",
    )
    private: list[str] = Field(
        default_factory=list,
        description="Networks that are not public and may be reached, such as 127.0.0.0/8.",
    )
    timeout: Duration | None = Field(
        default=None, description="The longest call, with its repetitions; 30s."
    )
    retries: int | None = Field(
        default=None, ge=0, description="Repetitions of what may be repeated: GET, PUT, DELETE; 2."
    )
    max_result: Size | None = Field(default=None, description="The largest answer; 1MiB.")
    pure: bool | None = Field(
        default=None,
        description="What is read stays the same during a run: equal GETs are sent once.",
    )
