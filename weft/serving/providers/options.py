"""Settings of a hosted model. Needs none of the vendors' libraries."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, get_args

from weft.core.ports.model import ModelRequest, Sampling
from weft.serving.openai.endpoint import Price

ThinkingMode = Literal["adaptive", "disabled"]
_ALWAYS_SENT: Final = frozenset({"max_tokens", "stop", "stop_token_ids"})
SETTINGS: Final[dict[str, Any]] = {
    field.name: field.default for field in fields(Sampling) if field.name not in _ALWAYS_SENT
}
"""Sampling settings that an API may not take, each with its value when it is not set."""


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """Options of a client of a hosted API.

    `ignore` names sampling settings that requests may have and the model is never sent, such as
    `temperature` for models that refuse it; all others that it does not take are errors.
    `thinking`: `adaptive` (the model decides), `disabled`, or the most tokens of a thought; None:
    the model's default. `api_version` is a version of the API, where it is not the library's.
    `price` adds money to usage. `idle_timeout_s` is the longest silence within an answer,
    `connections` the most requests in flight, `max_answer_chars` bounds one answer.

    Raises: `ValueError` for a wrong value.
    """

    ignore: tuple[str, ...] = ()
    thinking: ThinkingMode | int | None = None
    api_version: str | None = None
    price: Price | None = None
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 300.0
    connections: int = 128
    max_answer_chars: int = 4_000_000

    def __post_init__(self) -> None:
        for name in self.ignore:
            if name not in SETTINGS:
                there = ", ".join(SETTINGS)
                raise ValueError(f"`ignore` takes {there}, not {name!r}")
        self._check_thinking()
        if self.api_version is not None and not _is_word(self.api_version):
            raise ValueError(
                f"`api_version` is a text such as 2023-06-01, not {self.api_version!r}"
            )
        for name in ("connect_timeout_s", "idle_timeout_s", "connections", "max_answer_chars"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ValueError(f"`{name}` is a number above 0, not {value!r}")

    def without_ignored(self, request: ModelRequest) -> ModelRequest:
        """`request` without the settings of `ignore`."""
        if not self.ignore:
            return request
        defaults = {name: SETTINGS[name] for name in self.ignore}
        return replace(request, sampling=replace(request.sampling, **defaults))

    def _check_thinking(self) -> None:
        given = self.thinking
        if given is None or given in get_args(ThinkingMode):
            return
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            modes = ", ".join(get_args(ThinkingMode))
            raise ValueError(f"`thinking` is {modes} or a number of tokens, not {given!r}")


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isprintable() and bool(value)
