"""One thought under way, as a run of its own. Knows no strategy, and makes no model."""

from __future__ import annotations

from typing import Any

from weft.core.errors import BuildError, ReasoningError
from weft.engine import Inputs, NodeContext, Work
from weft.reasoning.question import Question
from weft.reasoning.strategy import Strategy
from weft.reasoning.thought import Thought
from weft.workflow.followed import followed
from weft.workflow.question_run import ANSWER, AskSettings, QuestionRun
from weft.workflow.thinking_options import check_typed
from weft.workflow.typed_answer import parsed


class ThoughtRun(QuestionRun):
    """One thought under way: see `QuestionRun`.

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
        identity = {"question": question.text, "strategy": strategy.name}
        work = self._typed(strategy.work(question))
        super().__init__("think", work, "think", identity, settings or AskSettings())

    def _typed(self, work: Work) -> Work:
        """`work`, which fails with an answer that does not fit the schema."""

        def checked(thought: Thought) -> Thought:
            self.answer_in(thought)
            return thought

        async def typed(context: NodeContext, inputs: Inputs) -> Any:
            return followed(await work(context, inputs), checked)

        return work if self._schema is None else typed

    def answer_in(self, value: Thought) -> Any:
        return value.answer if self._schema is None else parsed(value.answer, self._schema)

    @property
    def thought(self) -> Thought:
        """What came of it. Raises: `ReasoningError` when there is no answer."""
        if isinstance(self.outcome.value, Thought):
            return self.outcome.value
        failure = self.outcome.failure
        raise ReasoningError(
            f"{self._strategy} came to no answer: {self.why_not}",
            node=ANSWER,
            retryable=failure is not None and failure.retryable,
        )
