"""Sampling, prompt and context limits of a request, for every kind of local model."""

from __future__ import annotations

import math
import secrets
from typing import TypeVar

from weft.core.errors import CapabilityError, ContextLengthExceeded, ModelRequestError
from weft.core.ports.model import ModelRequest, Sampling, check_media
from weft.decoding.network.network import ModelGenerationConfig
from weft.decoding.sampling import SamplingParams
from weft.serving.generation_config import DEFAULT_TEMPERATURE
from weft.serving.local.options import EXTRA_FIELDS
from weft.serving.local.tokenizer import TOO_LONG_HINT
from weft.serving.local.vocabulary import Vocabulary

T = TypeVar("T")
_GREEDY_BELOW = 1e-5


def or_default(value: T | None, default: T) -> T:
    """`value`, or `default` where it is None."""
    return default if value is None else value


def seed_of(sampling: Sampling) -> int:
    """The request's seed, or a random one."""
    return secrets.randbits(64) if sampling.seed is None else sampling.seed


def sampling_params(
    sampling: Sampling, config: ModelGenerationConfig, default: float = DEFAULT_TEMPERATURE
) -> SamplingParams:
    """The sampling parameters: the request's, or the generation config's, or else `default`.

    The same for requests with a schema or grammar.
    """
    temperature = or_default(sampling.temperature, or_default(config.temperature, default))
    return SamplingParams(
        0.0 if temperature < _GREEDY_BELOW else temperature,
        or_default(sampling.top_k, config.top_k),
        or_default(sampling.top_p, config.top_p),
        or_default(sampling.min_p, 0.0),
    )


def prompt_of(request: ModelRequest, vocabulary: Vocabulary, context_tokens: int) -> list[int]:
    """The token ids of the prompt. Raises: `ModelRequestError` for an unknown token.

    A conversation that obviously exceeds the context is refused before it is tokenized.
    """
    prompt = list(request.prompt_token_ids)
    prompt = prompt or vocabulary.encode_chat(
        request.messages, request.continues, context_tokens, request.template_kwargs
    )
    strange = [token for token in prompt if not 0 <= token < vocabulary.size]
    if strange:
        raise ModelRequestError(
            f"token {strange[0]} is outside the vocabulary of {vocabulary.size}"
        )
    return prompt


def room_after(tokens: int, context_tokens: int) -> int:
    """The number of tokens left in the context. Raises: `ContextLengthExceeded` if none is."""
    if tokens >= context_tokens:
        raise ContextLengthExceeded(
            f"the prompt has {tokens} tokens; with an answer it must fit into {context_tokens}",
            hint=TOO_LONG_HINT,
        )
    return context_tokens - tokens


def check_request(request: ModelRequest) -> None:
    """Check what no local model can answer. Raises: `ModelRequestError`, `CapabilityError`."""
    check_media(request, "a local model")
    check_sampling(request.sampling)
    beyond = [*request.sampling.shifts]
    beyond += ["reasoning_effort"] if request.sampling.reasoning_effort is not None else []
    if beyond:
        raise CapabilityError(
            f"a local model has no {beyond[0]}",
            hint="leave it out; servers such as vLLM have it",
        )
    stops = request.sampling.stop or request.sampling.stop_token_ids
    if (request.schema is not None or request.grammar is not None) and stops:
        raise ModelRequestError(
            "a schema or grammar and stop strings or tokens exclude one another",
            hint="it already says where the answer ends",
        )
    unknown = sorted(set(request.extra) - EXTRA_FIELDS)
    if unknown:
        names = ", ".join(sorted(EXTRA_FIELDS))
        raise ModelRequestError(
            f"a local model does not know extra {unknown[0]!r}", hint=f"it knows {names}"
        )
    if not isinstance(request.extra.get("ignore_eos", False), bool):
        raise ModelRequestError("ignore_eos is true or false")


def check_sampling(sampling: Sampling) -> None:
    """Raises: `ModelRequestError` for an invalid value."""
    temperature = or_default(sampling.temperature, 0.0)
    wrong = {
        "max_tokens": or_default(sampling.max_tokens, 1) < 1,
        "thinking_tokens": or_default(sampling.thinking_tokens, 0) < 0,
        "temperature": not (math.isfinite(temperature) and temperature >= 0.0),
        "top_p": not 0.0 < or_default(sampling.top_p, 1.0) <= 1.0,
        "top_k": or_default(sampling.top_k, 0) < 0,
        "min_p": not 0.0 <= or_default(sampling.min_p, 0.0) <= 1.0,
        "stop": "" in sampling.stop,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise ModelRequestError(f"{name} cannot be {getattr(sampling, name)!r}")
