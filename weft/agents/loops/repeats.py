"""Which calls were made before, so that a model that turns in circles can be told. Makes none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from weft.agents.agent import Observation


class Repeats:
    """The calls of one run. A call that failed in a way that may pass is not held to be made."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def note(self, observation: Observation) -> None:
        """Remember a call that was made."""
        failure = observation.outcome.failure
        if failure is None or not failure.retryable:
            key = _key(observation.tool, observation.arguments)
            self._numbers.setdefault(key, observation.number)

    def of(self, tool: str, arguments: Mapping[str, Any]) -> int | None:
        """The number of the same call with the same arguments, if it was made."""
        return self._numbers.get(_key(tool, arguments))


def _key(tool: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([tool, arguments], sort_keys=True)
