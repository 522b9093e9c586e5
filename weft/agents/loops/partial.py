"""What is left where a model gives no answer: the results that were found, and why no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from weft.agents.agent import Answer, Observation
from weft.agents.loops.shown import RESULT_CHARS, shown_all
from weft.core.errors import AgentError
from weft.core.values import JsonSchema
from weft.engine import Partial

_CHARS: Final = 4 * RESULT_CHARS


def partial_answer(
    error: AgentError, calls: Sequence[Observation], schema: JsonSchema | None, found: Answer
) -> Answer:
    """`found`, with the results of `calls` in place of the answer that the model did not give.

    Raises: `error`, where no call has a result, or where the answer has a schema.
    """
    results = [call for call in calls if call.outcome.ok and call.outcome.via != "cache"]
    if schema is not None or not results:
        raise error
    return replace(found, value="\n".join(shown_all(results, _CHARS)), partial=error.message)


def ended(answer: Answer) -> Answer | Partial:
    """`answer` as a work returns it: one that is partial makes its run partial."""
    if not answer.partial:
        return answer
    error = AgentError(
        f"the answer is not complete, it lists results of calls: {answer.partial}",
        hint="ask a larger model, or ask for less",
    )
    return Partial(answer, error.failure())
