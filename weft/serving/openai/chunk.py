"""Pydantic models of the wire format of a streamed answer.

One shape serves chat chunks, text completion chunks, and whole answers of servers that do not
stream. Unused fields are ignored.
"""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

_Count = Annotated[int, Field(ge=0)]


def _as_text(value: object) -> object:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _if_text(value: object) -> object:
    return value if isinstance(value, str) else None


class FunctionPiece(BaseModel):
    """A piece of a function call. Some servers send the arguments as an object, not as text."""

    name: str | None = None
    arguments: Annotated[str | None, BeforeValidator(_as_text)] = None


class ToolPiece(BaseModel):
    """A piece of a tool call; any of its parts may be missing."""

    index: int | None = None
    id: str | None = None
    function: FunctionPiece | None = None


class WireDelta(BaseModel):
    """What a chunk adds to the message, or the whole message.

    Reasoning is `reasoning` in vLLM and OpenRouter, `reasoning_content` in DeepSeek and SGLang; a
    server that sends both sends the same text twice. `function_call` is the older, single form of
    `tool_calls`.
    """

    content: str | None = None
    refusal: str | None = None
    reasoning: Annotated[str | None, BeforeValidator(_if_text)] = None
    reasoning_content: Annotated[str | None, BeforeValidator(_if_text)] = None
    tool_calls: list[ToolPiece] | None = None
    function_call: FunctionPiece | None = None

    @property
    def thought(self) -> str:
        """The reasoning in this part."""
        return self.reasoning or self.reasoning_content or ""

    @property
    def pieces(self) -> list[ToolPiece]:
        """The pieces of tool calls in this part."""
        single = ToolPiece(index=0, function=self.function_call) if self.function_call else None
        return self.tool_calls or ([single] if single else [])


def _if_stop(value: object) -> object:
    return value if isinstance(value, str | int) else None


class TopLogprob(BaseModel):
    """The natural log of the probability of one token."""

    logprob: float


class TokenLogprob(TopLogprob):
    """Log probability of the sampled token, and the largest ones at its position."""

    top_logprobs: list[TopLogprob] = []


class Logprobs(BaseModel):
    """Chat puts them under `content`, text completion under `token_logprobs`."""

    content: list[TokenLogprob] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None

    def values(self) -> tuple[float, ...]:
        """One number for each token of the chunk."""
        if self.content:
            return tuple(token.logprob for token in self.content)
        return tuple(value for value in self.token_logprobs or () if value is not None)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        chat = sum(1 + len(token.top_logprobs) for token in self.content or ())
        return (
            chat
            + len(self.token_logprobs or ())
            + sum(map(len, filter(None, self.top_logprobs or ())))
        )

    def largest(self, most: int) -> tuple[tuple[float, ...], ...]:
        """For each token of the chunk at most `most` numbers, the largest first."""
        if not most:
            return ()
        if self.content:
            found = [[top.logprob for top in token.top_logprobs] for token in self.content]
        else:
            found = [list(top.values()) for top in self.top_logprobs or () if top is not None]
        return tuple(tuple(sorted(values, reverse=True)[:most]) for values in found)


class WireChoice(BaseModel):
    """One candidate's part of a chunk.

    The stop text or token that ended the answer is `stop_reason` in vLLM, `matched_stop` in SGLang.
    """

    index: int = 0
    delta: WireDelta | None = None
    message: WireDelta | None = None
    text: str | None = None
    finish_reason: str | None = None
    stop_reason: Annotated[str | int | None, BeforeValidator(_if_stop)] = None
    matched_stop: Annotated[str | int | None, BeforeValidator(_if_stop)] = None
    logprobs: Logprobs | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None


class PromptDetails(BaseModel):
    """How many prompt tokens the server had cached."""

    cached_tokens: _Count | None = None


class CompletionDetails(BaseModel):
    """How many generated tokens were reasoning."""

    reasoning_tokens: _Count | None = None


class WireUsage(BaseModel):
    """Token counts of the server."""

    prompt_tokens: _Count = 0
    completion_tokens: _Count | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


class WireDrafting(BaseModel):
    """vLLM's counts of drafting for one answer: totals, and each verified draft."""

    num_spec_steps: _Count = 0
    num_draft_tokens: _Count = 0
    num_accepted_draft_tokens: _Count = 0
    per_step_drafted: list[_Count] | None = None
    per_step_accepted: list[_Count] | None = None


class WireMetrics(BaseModel):
    """The server's counts for one answer."""

    speculative_decoding: WireDrafting | None = None


class WireError(BaseModel):
    """An error object in the middle of a stream."""

    message: str | None = None
    code: int | str | None = None


def _if_metrics(value: object) -> object:
    """None for malformed counts, as an answer is complete without them."""
    try:
        return None if value is None else WireMetrics.model_validate(value)
    except ValidationError:
        return None


class Chunk(BaseModel):
    """One event of a stream."""

    model: str | None = None
    choices: list[WireChoice] = []
    usage: WireUsage | None = None
    error: WireError | str | None = None
    metrics: Annotated[WireMetrics | None, BeforeValidator(_if_metrics)] = None
    prompt_token_ids: list[int] | None = None

    @property
    def prompt(self) -> list[int] | None:
        """Ids of the prompt: in the chunk for chat, in the first choice for text completion."""
        if self.prompt_token_ids is not None:
            return self.prompt_token_ids
        return self.choices[0].prompt_token_ids if self.choices else None
