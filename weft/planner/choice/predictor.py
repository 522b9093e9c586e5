"""How lossy each model's answer to a prompt will be: the port, and the simplest answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Predictor(Protocol):
    """Predicts losses; quick, and the same for the same text."""

    def losses(self, text: str) -> Mapping[str, float]:
        """The expected loss of each model that this predictor knows, for the prompt `text`."""


class StaticPredictor:
    """The same losses for every prompt."""

    def __init__(self, losses: Mapping[str, float]) -> None:
        self._losses = dict(losses)

    def losses(self, text: str) -> Mapping[str, float]:  # noqa: ARG002 - they are the same for all
        return self._losses
