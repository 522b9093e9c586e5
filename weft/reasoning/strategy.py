"""The port of strategies: a question in, a node function out whose value is a `Thought`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from weft.core.errors import ReasoningError
from weft.core.events import Listener
from weft.core.generated_text import is_blank, without_thought
from weft.core.ids import NodeId
from weft.core.ports import THOUGHT_HINT, Clock
from weft.engine import Graph, Inputs, Node, NodeContext, NodeFn, Run, RunOptions
from weft.engine.kinds.body import map_result
from weft.reasoning.question import Question
from weft.reasoning.thought import Thought


class Strategy(Protocol):
    """A way to answer a question with a model; `weft.reasoning.strategies` makes them."""

    @property
    def name(self) -> str:
        """The name in workflows and on the command line."""

    def work(self, question: Question) -> NodeFn:
        """The node function that answers `question`; its value is a `Thought`.

        Its model calls and threads become nodes inside its node. It raises `ReasoningError` or
        `ModelError` when there is no answer at all.
        """


class NonEmptyStrategy:
    """Implements `Strategy` by `strategy`; an empty answer raises `ReasoningError`."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    @property
    def name(self) -> str:
        return self._strategy.name

    def work(self, question: Question) -> NodeFn:
        work = self._strategy.work(question)

        async def answering(context: NodeContext, inputs: Inputs) -> Any:
            return map_result(await work(context, inputs), self._answered)

        return answering

    def _answered(self, thought: Thought) -> Thought:
        if not is_blank(without_thought(thought.answer)):
            return thought
        why = f": {thought.why}" if thought.why else ""
        raise ReasoningError(f"{self.name} came to an empty answer{why}", hint=THOUGHT_HINT)


_OPTIONS = RunOptions()
THINK = NodeId("think")
"""The only node of the run of `run_thought`."""


async def run_thought(
    strategy: Strategy,
    question: Question,
    *,
    options: RunOptions = _OPTIONS,
    listeners: Iterable[Listener] = (),
    clock: Clock | None = None,
) -> Thought:
    """Answer `question` with `strategy`, in a run of the one node `think`.

    Raises: `ReasoningError` with the reason why there is no answer.
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
