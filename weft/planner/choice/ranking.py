"""Ranks models by predicted loss and weighted costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Protocol

from weft.core.errors import Failure


class LossPredictor(Protocol):
    """Predicts losses, quickly and deterministically."""

    def losses(self, text: str) -> Mapping[str, float]:
        """The expected loss of each known model for the prompt `text`."""


class StaticPredictor:
    """The same losses for every prompt."""

    def __init__(self, losses: Mapping[str, float]) -> None:
        self._losses = dict(losses)

    def losses(self, text: str) -> Mapping[str, float]:  # noqa: ARG002 - they are the same for all
        return self._losses


_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """One of the models to choose from. Unknown costs are 0.

    loss               the default loss, in a unit that all models of a choice share: 1 - accuracy,
                       nats per token
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
        prompt = prompt_tokens * self.prompt_price
        return (prompt + completion_tokens * self.completion_price) / _PER


@dataclass(frozen=True, slots=True)
class CostWeights:
    """The price of costs in loss: with 1 the most expensive model has to be better by 1 than a free
    one. All 0: only the loss counts.
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


@dataclass(frozen=True, slots=True)
class RankedModel:
    """A ranked model: `score` is the sum of its predicted `loss` and its weighted `cost`."""

    model: str
    loss: float
    cost: float

    @property
    def score(self) -> float:
        return self.loss + self.cost


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The models of a call, best first, and those that failed before one answered."""

    ranked: tuple[RankedModel, ...]
    failed: tuple[tuple[str, Failure], ...] = ()

    @property
    def model(self) -> str:
        """The last model that was called."""
        return self.ranked[min(len(self.failed), len(self.ranked) - 1)].model

    def __str__(self) -> str:
        shown = (f"{each.model} {each.loss:.3g}+{each.cost:.3g}" for each in self.ranked)
        return f"{self.model} ({', '.join(shown)})"


def rank(
    losses: Mapping[str, float],
    profiles: Mapping[str, ModelProfile],
    weights: CostWeights,
    tokens: tuple[int, int] = (1000, 250),
) -> tuple[RankedModel, ...]:
    """All models of `profiles`, by loss(i) + sum of weight_j * cost_j(i); ties keep their order.

    Costs are shares of the most expensive model's, so that weights are comparable between sets of
    models. `tokens` are those of the prompt and the answer, for the price. A model that is missing
    in `losses` has the loss of its profile, or the worst one.
    """
    known = [losses.get(name, profile.loss) for name, profile in profiles.items()]
    worst = max((loss for loss in known if loss is not None), default=0.0)
    money = _shares([profile.money(*tokens) for profile in profiles.values()])
    latency = _shares([profile.latency_s for profile in profiles.values()])
    size = _shares([profile.size for profile in profiles.values()])
    ranked = [
        RankedModel(
            name,
            worst if loss is None else loss,
            weights.money * money[index]
            + weights.latency * latency[index]
            + weights.size * size[index],
        )
        for index, (name, loss) in enumerate(zip(profiles, known, strict=True))
    ]
    return tuple(sorted(ranked, key=lambda each: each.score))


def _shares(costs: list[float]) -> list[float]:
    most = max(costs, default=0.0)
    return [cost / most if most else 0.0 for cost in costs]
