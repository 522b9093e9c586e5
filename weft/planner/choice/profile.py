"""What is known of a model before it is asked, and what its costs matter. Asks no model."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Profile:
    """One model among several. What is not known stays 0 and costs nothing.

    loss               the loss to expect where no predictor knows better, in any unit that all
                       models of a choice share: 1 - accuracy, nats per token
    prompt_price       US dollars per million tokens of prompts
    completion_price   US dollars per million tokens of answers
    latency_s          seconds of a usual answer
    size               billions of parameters
    """

    loss: float | None = None
    prompt_price: float = 0.0
    completion_price: float = 0.0
    latency_s: float = 0.0
    size: float = 0.0

    def __post_init__(self) -> None:
        if self.loss is not None and not math.isfinite(self.loss):
            raise ValueError(f"loss must be a finite number, got {self.loss}")
        for name in ("prompt_price", "completion_price", "latency_s", "size"):
            _check(name, getattr(self, name))

    def money(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The price of a call in US dollars."""
        prompt = prompt_tokens * self.prompt_price
        return (prompt + completion_tokens * self.completion_price) / _PER


@dataclass(frozen=True, slots=True)
class Weights:
    """How much loss a cost is worth: 1 means that the dearest model has to be better by 1 than one
    that costs nothing. All 0: only the loss counts.
    """

    money: float = 0.0
    latency: float = 0.0
    size: float = 0.0

    def __post_init__(self) -> None:
        for each in fields(self):
            _check(each.name, getattr(self, each.name))


def _check(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must not be negative, got {value}")
