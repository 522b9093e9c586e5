"""How a request switches a model's thought off, or bounds it, by fields of its body.

For requests that cannot go on from token ids: those with tools or media, and servers that hide ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.core.errors import CapabilityError
from weft.core.ports.model import ModelRequest
from weft.serving.openai.server import Kind, Server

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ThinkingSwitch:
    """Fields of a request's body. None: there are none.

    `off`: what switches the thought off, such as `{"reasoning_effort": "none"}`; mappings in it are
    merged with those of the request. `budget`: the name of the field for the most tokens of a
    thought.

    Raises: `TypeError` for anything else.
    """

    off: Mapping[str, Any] | None = None
    budget: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.off, Mapping | None):
            raise TypeError("thinking.off is a mapping of fields, such as {reasoning_effort: none}")
        if not isinstance(self.budget, str | None):
            raise TypeError("thinking.budget is the name of a field")

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> ThinkingSwitch | None:
        """The switch of a client's option. Raises: `TypeError`, `ValueError`."""
        if given is None:
            return None
        unknown = sorted(set(given) - {"off", "budget"})
        if unknown:
            raise ValueError(f"thinking has `off` and `budget`, not {unknown[0]!r}")
        return cls(**given)

    def fields(self, tokens: int) -> Body:
        """The fields for a thought of at most `tokens` tokens. Raises: `CapabilityError`."""
        if not tokens and self.off is not None:
            return dict(self.off)
        if self.budget is not None:
            return {self.budget: tokens}
        what = "switch a thought off" if not tokens else f"bound a thought to {tokens} tokens"
        raise CapabilityError(
            f"this server is not known to {what} for such a request",
            hint="declare how with the model: `thinking: {off: {FIELD: VALUE}, budget: FIELD}`",
        )


_TEMPLATE: Final = ThinkingSwitch({"chat_template_kwargs": {"enable_thinking": False}})
_DEFAULTS: Final[Mapping[Kind, ThinkingSwitch]] = {
    "vllm": ThinkingSwitch(_TEMPLATE.off, "thinking_token_budget"),
    "sglang": _TEMPLATE,
    "llamacpp": _TEMPLATE,
}


def switch_of(declared: ThinkingSwitch | None, server: Server) -> ThinkingSwitch:
    """The declared switch, or the usual one of such servers."""
    return declared or _DEFAULTS.get(server.kind, ThinkingSwitch())


def merged(body: Body, fields: Body) -> Body:
    """`body` with `fields`, whose mappings are merged with those of `body`."""
    both = {
        name: {**body[name], **value}
        for name, value in fields.items()
        if isinstance(value, Mapping) and isinstance(body.get(name), Mapping)
    }
    return {**body, **fields, **both}


def goes_by_ids(request: ModelRequest, server: Server, declared: ThinkingSwitch | None) -> bool:
    """Whether the client itself can end the thought, as it can read and write the token ids."""
    media = any(message.media for message in request.messages if message.parts)
    return server.kind == "vllm" and declared is None and not request.tools and not media
