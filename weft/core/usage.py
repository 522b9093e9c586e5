"""What a model call used. Errors carry it, so it depends on nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a call. Tokens are counted by the serving model; `money` is in US dollars.

    `forwards` counts target-model forward passes where the client can tell, else 0.
    `reasoning_tokens`: the part of `completion_tokens` that the thought took; None where there was
    a thought that nobody counted. A sum with an uncounted part is None, too.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0
    forwards: int = 0
    money: float = 0.0
    reasoning_tokens: int | None = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.requests + other.requests,
            self.forwards + other.forwards,
            self.money + other.money,
            _sum(self.reasoning_tokens, other.reasoning_tokens),
        )


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
