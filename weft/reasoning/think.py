"""A thought as a run of its own, for Python programs and tests. Knows no strategy."""

from __future__ import annotations

from collections.abc import Iterable

from weft.core.errors import ReasoningError
from weft.core.events import Listener
from weft.core.ids import NodeId
from weft.core.ports import Clock
from weft.engine import Graph, Node, Run, RunOptions
from weft.reasoning.question import Question
from weft.reasoning.strategy import Strategy
from weft.reasoning.thought import Thought

_OPTIONS = RunOptions()
THINK = NodeId("think")
"""The node of a run that thinks."""


async def run_thought(
    strategy: Strategy,
    question: Question,
    *,
    options: RunOptions = _OPTIONS,
    listeners: Iterable[Listener] = (),
    clock: Clock | None = None,
) -> Thought:
    """What `strategy` thinks about `question`, in a run with the one node `think`.

    Raises: `ReasoningError`, which says why there is no answer.
    """
    node = Node(THINK, strategy.work(question), kind="think")
    run = Run(Graph("think", [node]), options, clock=clock, listeners=listeners)
    result = await run.wait()
    outcome = result.outcomes[THINK]
    if isinstance(outcome.value, Thought):
        return outcome.value
    failure = outcome.failure
    raise ReasoningError(
        f"{strategy.name} came to no answer: {failure or '; '.join(result.reasons)}",
        node=THINK,
        hint=None if failure is None else failure.hint,
        retryable=failure is not None and failure.retryable,
    )
