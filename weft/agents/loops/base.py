"""The base of loops that talk with their model; partial answers where the model gives none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from weft.agents.agent import AgentOptions, Answer, Observation
from weft.agents.chat.model_output import check_schema
from weft.agents.chat.observations import RESULT_CHARS, format_observations
from weft.core.errors import AgentError
from weft.core.ports import ModelClient, ToolRunner
from weft.core.values import JsonSchema
from weft.durability.calls import GuardedTools
from weft.engine import Inputs, NodeContext, NodeFn, Partial

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
    return replace(
        found, value="\n".join(format_observations(results, _CHARS)), partial=error.message
    )


def as_node_value(answer: Answer) -> Answer | Partial:
    """`answer` as a work returns it: one that is partial makes its run partial."""
    if not answer.partial:
        return answer
    error = AgentError(
        f"the answer is not complete, it lists results of calls: {answer.partial}",
        hint="ask a larger model, or ask for less",
    )
    return Partial(answer, error.failure())


_OPTIONS = AgentOptions()


class LoopAgent(ABC):
    """An `Agent` over `tools` and `model`.

    Raises: `BuildError` when the schema of the answer is wrong.
    """

    name: ClassVar[str]

    def __init__(
        self, tools: ToolRunner, model: ModelClient, options: AgentOptions = _OPTIONS
    ) -> None:
        if options.schema is not None:
            check_schema(options.schema)
        self.tools = GuardedTools(tools)
        self.model = model
        self.options = options

    def work(self, question: str) -> NodeFn:
        """See `Agent.work`."""

        async def work(context: NodeContext, _: Inputs) -> Answer | Partial:
            return as_node_value(await self.answer(context, question))

        return work

    @abstractmethod
    async def answer(self, context: NodeContext, question: str) -> Answer:
        """Work on `question`. Raises: `AgentError`, `ModelError`."""
