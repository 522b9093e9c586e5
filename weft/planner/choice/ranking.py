"""The models of a choice in the order in which they should be asked. Asks none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.core.errors import Failure
from weft.planner.choice.profile import Profile, Weights


@dataclass(frozen=True, slots=True)
class Ranked:
    """A model's place in a choice: `score` is its predicted `loss` and its weighted `cost`."""

    model: str
    loss: float
    cost: float

    @property
    def score(self) -> float:
        """What is minimised."""
        return self.loss + self.cost


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for a call, best first, and which models failed before one answered."""

    ranked: tuple[Ranked, ...]
    failed: tuple[tuple[str, Failure], ...] = ()

    @property
    def model(self) -> str:
        """The model that was asked last."""
        return self.ranked[min(len(self.failed), len(self.ranked) - 1)].model

    def __str__(self) -> str:
        shown = (f"{each.model} {each.loss:.3g}+{each.cost:.3g}" for each in self.ranked)
        return f"{self.model} ({', '.join(shown)})"


def rank(
    losses: Mapping[str, float],
    profiles: Mapping[str, Profile],
    weights: Weights,
    tokens: tuple[int, int] = (1000, 250),
) -> tuple[Ranked, ...]:
    """All models of `profiles`, by loss(i) + sum of weight_j * cost_j(i); ties keep their order.

    Costs are shares of the dearest model's, so that weights mean the same for any set of models.
    `tokens` are those of the prompt and the answer, for the price. A model that `losses` does not
    know has the loss of its profile, or the worst one there is.
    """
    known = [losses.get(name, profile.loss) for name, profile in profiles.items()]
    worst = max((loss for loss in known if loss is not None), default=0.0)
    money = _shares([profile.money(*tokens) for profile in profiles.values()])
    latency = _shares([profile.latency_s for profile in profiles.values()])
    size = _shares([profile.size for profile in profiles.values()])
    ranked = [
        Ranked(
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
