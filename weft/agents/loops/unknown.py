"""Calls of which nobody knows whether they were carried out: no matter for a model to decide."""

from __future__ import annotations

from collections.abc import Iterable

from weft.agents.agent import Observation
from weft.core.errors import EffectUnknown


def stop_at_unknown(observations: Iterable[Observation]) -> None:
    """End the agent where a model might repeat what must not be repeated.

    Raises: `EffectUnknown`, for a person.
    """
    for observation in observations:
        failure = observation.outcome.failure
        if failure is not None and failure.error == EffectUnknown.__name__:
            raise EffectUnknown(failure.message, hint=failure.hint)
