"""Refuses what a hosted API cannot honour, by the name of the field, before anything is sent."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from weft.core.errors import CapabilityError
from weft.core.ports.model import ModelRequest, Sampling, check_media
from weft.core.values import AUTOREGRESSIVE
from weft.serving.providers.card import ModelCard
from weft.serving.providers.options import SETTINGS

_NEUTRAL: Final[dict[str, tuple[object, ...]]] = {
    "min_p": (None, 0),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "repetition_penalty": (None, 1),
}
"""Values that change nothing, so that leaving them out honours them."""


def check_request(request: ModelRequest, who: str, card: ModelCard) -> None:
    """Raises: `CapabilityError` for a field that no hosted API takes, or this model does not."""
    features = {
        "prompt_token_ids": bool(request.prompt_token_ids),
        "placement": bool(request.placement),
        "attention: concurrent attention": request.attention is not None,
        "grammar": request.grammar is not None,
        "adapter": request.adapter is not None,
        "logprobs": request.logprobs or request.top_logprobs > 0,
        "stop_token_ids": bool(request.sampling.stop_token_ids),
        f"decode: the decoder {request.decode.method!r}": request.decode != AUTOREGRESSIVE,
        f"extra: {', '.join(sorted(request.extra))}": bool(request.extra),
        "schema": request.schema is not None and not card.structured_output,
        "going on with an unfinished answer": request.continues,
    }
    for name, wanted in features.items():
        if wanted:
            hint = "vLLM and models in this process take more; see the table of hosted models"
            raise CapabilityError(f"{who} does not take {name}", hint=hint)
    check_media(request, who, card.media)


def check_sampling(sampling: Sampling, who: str, takes: Collection[str], why: str = "") -> None:
    """Raises: `CapabilityError` for settings that are not among those that the API `takes`."""
    refused = [
        name
        for name in SETTINGS
        if name not in takes
        and getattr(sampling, name) not in _NEUTRAL.get(name, (SETTINGS[name],))
    ]
    if refused:
        names = ", ".join(refused)
        hint = f"leave it out, or send requests without it: `ignore: [{names}]` in the model's"
        hint += f" options, {' '.join(f'--ignore {name}' for name in refused)} for a command"
        raise CapabilityError(f"{who} does not take {names}", hint=hint + why)


def check_effort(effort: str | None, who: str, values: Collection[str]) -> None:
    """Raises: `CapabilityError` for a `reasoning_effort` that the model does not know."""
    if effort is not None and effort not in values:
        known = ", ".join(values) or "none"
        raise CapabilityError(
            f"{who} does not take the reasoning_effort {effort!r}", hint=f"it takes: {known}"
        )
