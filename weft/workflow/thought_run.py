"""One thought under way, as a run of its own, which nobody records. Makes no strategy."""

from __future__ import annotations

from typing import Any

from weft.core.errors import BuildError, ReasoningError
from weft.core.events import Outcome
from weft.core.ids import run_id
from weft.engine import Graph, Inputs, Limit, Node, NodeContext, Run, RunOptions, Work
from weft.engine.cassette import RecordRedactor
from weft.engine.followed import followed
from weft.reasoning.question import Question
from weft.reasoning.strategy import Strategy
from weft.reasoning.thought import Thought
from weft.workflow.question_run import ANSWER, AskSettings, why_none
from weft.workflow.result import FlowResult
from weft.workflow.secrets import redactor_here
from weft.workflow.thinking_options import check_typed
from weft.workflow.typed_answer import parsed


class ThoughtRun:
    """Like `FlowRun`: `wait` carries it out, `cancel` ends it.

    Raises, when it is made: `BuildError` for an empty question, or a schema that the strategy
    cannot keep to.
    """

    def __init__(
        self, strategy: Strategy, question: Question, settings: AskSettings | None = None
    ) -> None:
        if not question.text.strip():
            raise BuildError("the question is empty", hint='weft think "why ...?"')
        check_typed(strategy.name, question.schema)
        self._strategy = strategy.name
        self._schema = question.schema
        said = settings or AskSettings()
        limit = None if said.budget is None else Limit(said.budget)
        work = self._typed(strategy.work(question))
        self._run = Run(
            Graph("think", [Node(ANSWER, work, kind="think")], [ANSWER]),
            RunOptions(said.concurrency, deadline_s=said.deadline_s, limit=limit),
            run=run_id("think", {"question": question.text, "strategy": strategy.name}),
            clock=said.clock,
            listeners=said.listeners,
            redact=RecordRedactor(redactor_here()),
        )
        self.outcome = Outcome("cancelled")

    async def wait(self) -> FlowResult:
        """Run to the end. The output `answer` is missing when there is none, and says why."""
        result = await self._run.wait()
        self.outcome = result.outcomes[ANSWER]
        if self.outcome.ok:
            return FlowResult.of(result, {"answer": self._answer(self.outcome.value)}, {})
        return FlowResult.of(result, {}, {"answer": why_none(self.outcome)})

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run soon, keeping what is done; `wait` then returns."""
        self._run.cancel(reason)

    @property
    def thought(self) -> Thought:
        """What came of it. Raises: `ReasoningError` when there is no answer."""
        if isinstance(self.outcome.value, Thought):
            return self.outcome.value
        raise no_thought(self._strategy, self.outcome)

    def _typed(self, work: Work) -> Work:
        """`work`, which fails with an answer that does not fit the schema."""

        def checked(thought: Thought) -> Thought:
            self._answer(thought)
            return thought

        async def typed(context: NodeContext, inputs: Inputs) -> Any:
            return followed(await work(context, inputs), checked)

        return work if self._schema is None else typed

    def _answer(self, thought: Thought) -> Any:
        return parsed(thought.answer, self._schema)


def no_thought(strategy: str, outcome: Outcome) -> ReasoningError:
    """The error of a thought that came to no answer; `outcome` is that of its node."""
    failure = outcome.failure
    return ReasoningError(
        f"{strategy} came to no answer: {why_none(outcome)}",
        node=ANSWER,
        retryable=failure is not None and failure.retryable,
    )
