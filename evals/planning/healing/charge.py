"""What is charged for asking a model, by one rule for every system. Knows no system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.core.ports import ModelRequest
from weft.testing import FakeModel


@dataclass(frozen=True, slots=True)
class Asked:
    """`calls` of a model in all; `after_failure`: those before which a call of a tool had failed
    that no other is charged to. An agent that asks after each failure is charged one for each.
    """

    calls: int = 0
    after_failure: int = 0


NOTHING: Final = Asked()


class ChargedModel:
    """`client` answers as `answer` says, and is charged. `failed` grows with calls that fail."""

    def __init__(self, answer: Callable[[ModelRequest], str], failed: Sequence[str]) -> None:
        self.client = FakeModel(self._answered)
        self._answer = answer
        self._failed = failed
        self._after_failure = 0

    @property
    def asked(self) -> Asked:
        return Asked(len(self.client.requests), self._after_failure)

    def _answered(self, request: ModelRequest) -> str:
        self._after_failure += self._after_failure < len(self._failed)
        return self._answer(request)
