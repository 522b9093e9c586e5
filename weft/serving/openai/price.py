"""What a hosted model costs; does not know where the numbers come from."""

from __future__ import annotations

from dataclasses import dataclass

_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `cached` prices prompt tokens the server had kept already.

    None for `cached`: they cost what other prompt tokens cost.
    """

    prompt: float
    completion: float
    cached: float | None = None

    def money(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> float:
        """The price of one call in dollars. `cached_tokens` are among the `prompt_tokens`."""
        cached = min(cached_tokens, prompt_tokens)
        cached_price = self.prompt if self.cached is None else self.cached
        fresh = (prompt_tokens - cached) * self.prompt
        return (fresh + cached * cached_price + completion_tokens * self.completion) / _PER
