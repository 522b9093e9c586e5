"""Under what circumstances a system runs: the speed of the model, its thoughts, the tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evals.planning.orchestration.script import Style


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds to the first token of an answer, and for each further one."""

    first_token_s: float
    per_token_s: float


SPEEDS: Final[Mapping[str, Speed]] = {
    "fast": Speed(0.03, 0.006),
    "medium": Speed(0.05, 0.02),
    "remote": Speed(0.4, 0.015),
    "slow": Speed(0.1, 0.06),
}
"""Tokens a second of one stream: 167 is a model of 8B on one recent GPU, 50 one that is shared or
larger, 67 after 0.4 s a remote API, 17 a large model on too little hardware."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How fast the model is, how much it thinks, and the tools' latencies: seed and scale."""

    speed: Speed
    style: Style
    seed: int = 0
    scale: float = 1.0

    @property
    def words(self) -> str:
        """All of it, for people."""
        speed, style = self.speed, self.style
        return (
            f"scripted, {speed.first_token_s * 1000:g} ms to the first token and"
            f" {speed.per_token_s * 1000:g} ms for each other, {style.calls} tokens of thought"
            f" before calls and {style.answer} before the answer, {style.plan} before the plan and"
            f" {style.join} after it; tools' latencies log-normal, seed {self.seed}"
        )
