"""The fields of a request body beyond those that the gateway reads itself. Knows no models.

Each is passed on to a model that honours it, is known to change no answer, or is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.serving.gateway.body import ChatBody
from weft.serving.gateway.problem import bad_request

WITHOUT_EFFECT: Final = frozenset(
    (
        *("user", "safety_identifier", "metadata", "store", "service_tier", "prediction"),
        *("prompt_cache_key", "prompt_cache_retention", "cache_salt", "request_id"),
    )
)
"""Fields about the client, billing and caches: they change no answer, whatever they hold."""

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
"""Values with which fields change nothing. Null never does."""

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
    """Raises: `Refused` with 400 for the first field that the model does not honour."""
    for name in fields:
        if name not in honoured:
            shown = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}..."
            said = f"`{shown}` is not supported by this model{_HINTS.get(name, '')}"
            raise bad_request(said, shown, "unsupported")


def _is_neutral(name: str, value: object) -> bool:
    """True and 1 are different values here."""
    return any(
        value == neutral and isinstance(value, bool) == isinstance(neutral, bool)
        for neutral in NEUTRAL.get(name, ())
    )
