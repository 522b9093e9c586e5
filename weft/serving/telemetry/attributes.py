"""What calls and their answers are in OpenTelemetry's words. Pure; holds no text of anybody."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.calls import ToolCalled
from weft.core.ports.model import ModelRequest
from weft.core.values import Completion, Denoised, Speculated, Usage

Attributes = dict[str, str | bool | int | float | Sequence[str]]


def asked(model: str, request: ModelRequest) -> Attributes:
    """A model call: what is asked for, and how."""
    sampling = request.sampling
    known: dict[str, str | int | float | Sequence[str] | None] = {
        "gen_ai.operation.name": "chat" if request.messages else "text_completion",
        "gen_ai.provider.name": "weft",
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": sampling.max_tokens,
        "gen_ai.request.temperature": sampling.temperature,
        "gen_ai.request.top_p": sampling.top_p,
        "gen_ai.request.top_k": sampling.top_k,
        "gen_ai.request.seed": sampling.seed,
        "gen_ai.request.stop_sequences": sampling.stop or None,
        "gen_ai.output.type": "text" if request.schema is None else "json",
        "weft.decoder": request.decode.method,
    }
    return {name: value for name, value in known.items() if value is not None}


def answered(completion: Completion) -> Attributes:
    """A model's answer: why it ended, what it took, how it was decoded."""
    told: Attributes = {"gen_ai.response.finish_reasons": (completion.finish_reason,)}
    if completion.model:
        told["gen_ai.response.model"] = completion.model
    told |= spent(completion.usage)
    if completion.decoding is not None:
        told |= decoded(completion.decoding)
    return told


def called(call: ToolCalled) -> Attributes:
    """A tool call."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.call,
        "weft.effect": call.effect,
    }


def spent(usage: Usage) -> Attributes:
    """Tokens, passes and money."""
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "weft.usage.requests": usage.requests,
        "weft.usage.forwards": usage.forwards,
        "weft.usage.money_usd": usage.money,
    }


def decoded(how: Speculated | Denoised) -> Attributes:
    """How several tokens were written a pass."""
    if isinstance(how, Denoised):
        return {
            "weft.decoder": how.method,
            "weft.decoder.lossless": how.lossless,
            "weft.decoder.forwards": how.forwards,
            "weft.decoder.kept_tokens": how.kept,
        }
    return {
        "weft.decoder": how.method,
        "weft.decoder.lossless": how.lossless,
        "weft.decoder.forwards": how.forwards,
        "weft.decoder.drafted_tokens": how.drafted,
        "weft.decoder.accepted_tokens": how.accepted,
    }
