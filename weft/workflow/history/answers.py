"""Open questions of recorded runs, and answers to them from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.errors import InputError, UnknownReference
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Letter
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.spec.schemas import violation
from weft.workflow.history.run_history import find_run, read_history


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """What a node of a run asks a person. `schema` is the JSON Schema that an answer fits."""

    run: RunId
    node: NodeId
    question: str
    schema: Mapping[str, Any]


class PendingQuestions:
    """The open questions of the runs in a journal. It blocks, briefly."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def questions(self, run: str) -> tuple[PendingQuestion, ...]:
        """What a run asks, the oldest question first. Raises: `UnknownReference`, `StoreError`."""
        found = find_run(self._journal, run)
        if not self._journal.summary(found).asking:
            return ()
        asked = read_history(self._journal, found).questions.values()
        return tuple(PendingQuestion(found, q.node, q.question, q.schema) for q in asked)

    def question(self, run: str, node: str) -> PendingQuestion:
        """What a node asks. Raises: `UnknownReference` when it asks nothing, `StoreError`."""
        asked = {question.node: question for question in self.questions(run)}
        if NodeId(node) in asked:
            return asked[NodeId(node)]
        hint = choice_hint(node, list(asked)) or f"{find_run(self._journal, run)} asks nothing"
        raise UnknownReference(f"{node!r} asks nothing", hint=hint)

    def give(self, question: PendingQuestion, value: Any) -> bool:
        """Leave an answer; true when a process has the run and goes on with it at once.

        Otherwise it is there when the run is resumed. Raises: `InputError` when it does not fit,
        `StoreError`.
        """
        why = violation(value, question.schema)
        if why is not None:
            error = InputError(f"the answer does not fit: {why}", node=question.node)
            raise error
        self._journal.send(question.run, Letter("answer", question.node, value))
        return self._journal.summary(question.run).standing in ("running", "asking")


class JournalHumanInputs:
    """Implements `People` over a journal. A run is named by its whole id; others are not told."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._answers = PendingQuestions(journal)

    def questions(self, run: str) -> list[dict[str, Any]]:
        self._check(run)
        return [
            {"node": asked.node, "question": asked.question, "schema": dict(asked.schema)}
            for asked in self._answers.questions(run)
        ]

    def answer(self, run: str, node: str, value: Any) -> bool:
        self._check(run)
        return self._answers.give(self._answers.question(run, node), value)

    def _check(self, run: str) -> None:
        try:
            self._journal.summary(RunId(run))
        except UnknownReference:
            raise UnknownReference(f"there is no run {run!r}") from None
