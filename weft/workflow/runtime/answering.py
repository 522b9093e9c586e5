"""Answers the questions of a run: given ones, those of a function, or none, so that it is left."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from weft.core.errors import InputError
from weft.core.events import Event, HumanAsked, Subscription
from weft.core.ids import NodeId, parent_of
from weft.core.questions import PendingQuestion
from weft.engine import Run
from weft.validation import answer_violation
from weft.workflow.runtime.options import AnswerFunction


def given_answer(answers: Mapping[str, Any], node: NodeId) -> str | None:
    """The key of `answers` for the question of `node`: its id, or that of the node around it."""
    return next((key for key in (node, parent_of(node)) if key in answers), None)


class RunAnswers:
    """Answers the questions of one run; without `waits` it declines those it cannot answer.

    `mistake`: the first answer that did not fit, or the error of the function.
    """

    def __init__(
        self, answers: Mapping[str, Any], answer: AnswerFunction | None, *, waits: bool
    ) -> None:
        self.mistake: BaseException | None = None
        self.subscription = Subscription(frozenset((HumanAsked,)), self._asked)
        self._answers = answers
        self._answer = answer
        self._waits = waits
        self._tasks: set[asyncio.Task[None]] = set()
        self._run: Run | None = None

    @property
    def needed(self) -> bool:
        """Whether there is anything to answer with."""
        return bool(self._answers) or self._answer is not None

    def attach(self, run: Run) -> None:
        """Answer the questions of `run`."""
        self._run = run

    def close(self) -> None:
        """End what still looks for an answer."""
        for task in self._tasks:
            task.cancel()

    def _asked(self, event: Event) -> None:
        assert isinstance(event, HumanAsked)
        task = asyncio.ensure_future(self._settle(event.node))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, node: NodeId) -> None:
        run = self._run
        asked = None if run is None else run.questions.get(node)
        if run is None or asked is None:
            return
        about = asked.tool, asked.arguments
        question = PendingQuestion(run.id, node, asked.question, asked.schema, *about)
        try:
            answer = await self._found(question)
            if answer is not None and (why := answer_violation(answer, asked.schema)) is not None:
                raise InputError(f"the answer to {node} does not fit: {why}", node=node)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - raised by `FlowRun.wait`
            self.mistake = self.mistake or error
            run.decline_all()
            return
        if node not in run.questions:
            return  # answered elsewhere meanwhile
        if answer is not None:
            run.answer(node, answer)
        elif not self._waits:
            run.decline(node)

    async def _found(self, question: PendingQuestion) -> Any:
        key = given_answer(self._answers, question.node)
        if key is not None:
            return self._answers[key]
        if self._answer is None:
            return None
        answer = self._answer(question)
        return await answer if inspect.isawaitable(answer) else answer
