"""What a diffusion model cannot do that others can: refused, not ignored."""

from __future__ import annotations

from weft.core.errors import CapabilityError
from weft.core.ports.model import ModelRequest


def check_possible(request: ModelRequest) -> None:
    """Raises: `CapabilityError` for what makes no sense where tokens come in any order."""
    wrong = {
        "tools": (bool(request.tools), "ask for JSON with a schema"),
        "logprobs": (
            request.logprobs or request.top_logprobs > 0,
            "a token that is filled in has no probability given the text before it",
        ),
        "a placement": (bool(request.placement), "give the prompt as one stretch"),
        "concurrent attention": (
            request.attention is not None,
            "run its workers as requests of their own, or use a model that writes on",
        ),
    }
    for name, (asked, hint) in wrong.items():
        if asked:
            raise CapabilityError(f"a diffusion model does not take {name}", hint=hint)
