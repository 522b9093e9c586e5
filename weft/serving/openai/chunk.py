"""The wire format of a streamed answer, checked; does not know what the pieces add up to.

One shape serves chat chunks, text completion chunks, and a whole answer from a server that does
not stream. Fields this program does not read are ignored.
"""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

_Count = Annotated[int, Field(ge=0)]


def _as_text(value: object) -> object:
    return json.dumps(value) if isinstance(value, dict) else value


class FunctionPiece(BaseModel):
    """A piece of a function call. Some servers send the arguments as an object, not as text."""

    name: str | None = None
    arguments: Annotated[str | None, BeforeValidator(_as_text)] = None


class ToolPiece(BaseModel):
    """A piece of a tool call; any of its parts may be missing."""

    index: int | None = None
    id: str | None = None
    function: FunctionPiece | None = None


class Delta(BaseModel):
    """What a chunk adds to the message, or the whole message."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolPiece] | None = None


class TokenLogprob(BaseModel):
    """The natural log of the probability of one token."""

    logprob: float


class Logprobs(BaseModel):
    """Chat puts them under `content`, text completion under `token_logprobs`."""

    content: list[TokenLogprob] | None = None
    token_logprobs: list[float | None] | None = None

    def values(self) -> tuple[float, ...]:
        """One number for each token of the chunk."""
        if self.content:
            return tuple(token.logprob for token in self.content)
        return tuple(value for value in self.token_logprobs or () if value is not None)


class Choice(BaseModel):
    """One candidate's part of a chunk."""

    index: int = 0
    delta: Delta | None = None
    message: Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    token_ids: list[int] | None = None


class PromptDetails(BaseModel):
    """How many prompt tokens the server had kept from earlier calls."""

    cached_tokens: _Count | None = None


class WireUsage(BaseModel):
    """Token counts as the server gives them."""

    prompt_tokens: _Count = 0
    completion_tokens: _Count | None = None
    prompt_tokens_details: PromptDetails | None = None


class WireError(BaseModel):
    """An error object in the middle of a stream."""

    message: str | None = None
    code: int | str | None = None


class Chunk(BaseModel):
    """One event of a stream."""

    model: str | None = None
    choices: list[Choice] = []
    usage: WireUsage | None = None
    error: WireError | str | None = None
