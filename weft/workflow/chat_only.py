"""What models that are made of other models cannot be asked for. Asks nobody."""

from __future__ import annotations

from weft.core.errors import CapabilityError
from weft.core.ports import ModelRequest
from weft.core.values import AUTOREGRESSIVE


def check_chat_only(request: ModelRequest, what: str, hint: str, *, schema: bool = False) -> None:
    """Raise `CapabilityError` when `request` is more than a chat; `schema`: its answer may fit one.

    `what` is the model in words, such as "brief is a workflow".
    """
    asked = {
        "prompt token ids": bool(request.prompt_token_ids),
        "tools": bool(request.tools) and request.tool_choice != "none",
        "an answer that fits a schema": request.schema is not None and not schema,
        "an answer in a grammar": request.grammar is not None,
        "going on with an answer": request.continues,
        "logprobs": request.logprobs or request.top_logprobs > 0,
        "stop tokens": bool(request.sampling.stop_token_ids),
        "placed prompts": bool(request.placement),
        "adapters": request.adapter is not None,
        "concurrent attention": request.attention is not None,
        f"the decoder {request.decode.method!r}": request.decode != AUTOREGRESSIVE,
    }
    for name, wanted in asked.items():
        if wanted:
            raise CapabilityError(f"{what}: no {name}", hint=hint)
