"""Sampling, prompt and room in the context, as every kind of local model reads a request."""

from __future__ import annotations

import math
import secrets
from typing import TypeVar

from weft.core.errors import ContextLengthExceeded, ModelRequestError
from weft.core.ports.model import ModelRequest, Sampling
from weft.decoding.network.network import ModelGenerationConfig
from weft.decoding.sampling import SamplingParams
from weft.serving.generation_config import DEFAULT_TEMPERATURE
from weft.serving.local.options import EXTRA_FIELDS
from weft.serving.local.tokenizer import TOO_LONG_HINT
from weft.serving.local.vocabulary import Vocabulary

T = TypeVar("T")
_GREEDY_BELOW = 1e-5


def given(value: T | None, default: T) -> T:
    """`value`, where there is one."""
    return default if value is None else value


def seed_of(sampling: Sampling) -> int:
    """The request's own, or any."""
    return secrets.randbits(64) if sampling.seed is None else sampling.seed


def shaping_of(
    sampling: Sampling, habits: ModelGenerationConfig, default: float = DEFAULT_TEMPERATURE
) -> SamplingParams:
    """How tokens are drawn; what the request leaves open is the model's habit, or else `default`.

    A request that is held to a schema or grammar is no exception.
    """
    temperature = given(sampling.temperature, given(habits.temperature, default))
    return SamplingParams(
        0.0 if temperature < _GREEDY_BELOW else temperature,
        given(sampling.top_k, habits.top_k),
        given(sampling.top_p, habits.top_p),
        given(sampling.min_p, 0.0),
    )


def prompt_of(request: ModelRequest, vocabulary: Vocabulary, context_tokens: int) -> list[int]:
    """Token ids. Raises: `ModelRequestError` for one that the model does not have.

    A conversation that can be seen to exceed the context is refused before it is tokenized.
    """
    prompt = list(request.prompt_token_ids)
    prompt = prompt or vocabulary.encode_chat(request.messages, request.continues, context_tokens)
    strange = [token for token in prompt if not 0 <= token < vocabulary.size]
    if strange:
        raise ModelRequestError(
            f"token {strange[0]} is outside the vocabulary of {vocabulary.size}"
        )
    return prompt


def room_after(tokens: int, context_tokens: int) -> int:
    """How many tokens of the context are left. Raises: `ContextLengthExceeded` where none is."""
    if tokens >= context_tokens:
        raise ContextLengthExceeded(
            f"the prompt has {tokens} tokens; with an answer it must fit into {context_tokens}",
            hint=TOO_LONG_HINT,
        )
    return context_tokens - tokens


def check_request(request: ModelRequest) -> None:
    """Check what no model could answer. Raises: `ModelRequestError`."""
    check_sampling(request.sampling)
    stops = request.sampling.stop or request.sampling.stop_token_ids
    if (request.schema is not None or request.grammar is not None) and stops:
        raise ModelRequestError(
            "a schema or grammar and stop strings or tokens exclude one another",
            hint="it already says where the answer ends",
        )
    unknown = sorted(set(request.extra) - EXTRA_FIELDS)
    if unknown:
        there = ", ".join(sorted(EXTRA_FIELDS))
        raise ModelRequestError(
            f"a local model does not know extra {unknown[0]!r}", hint=f"it knows {there}"
        )
    if not isinstance(request.extra.get("ignore_eos", False), bool):
        raise ModelRequestError("ignore_eos is true or false")


def check_sampling(sampling: Sampling) -> None:
    """Raises: `ModelRequestError` for a value that cannot be."""
    temperature = given(sampling.temperature, 0.0)
    wrong = {
        "max_tokens": given(sampling.max_tokens, 1) < 1,
        "temperature": not (math.isfinite(temperature) and temperature >= 0.0),
        "top_p": not 0.0 < given(sampling.top_p, 1.0) <= 1.0,
        "top_k": given(sampling.top_k, 0) < 0,
        "min_p": not 0.0 <= given(sampling.min_p, 0.0) <= 1.0,
        "stop": "" in sampling.stop,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise ModelRequestError(f"{name} cannot be {getattr(sampling, name)!r}")
