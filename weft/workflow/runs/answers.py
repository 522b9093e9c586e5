"""Answers from outside: to questions of runs that another process has, or that nobody has now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.errors import InputError, UnknownReference
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Letter
from weft.workflow.document.defects import closest
from weft.workflow.runs.find import find_run
from weft.workflow.runs.story import story_of
from weft.workflow.values import violation


@dataclass(frozen=True, slots=True)
class Question:
    """What a node of a run asks a person. `schema` is the JSON Schema that an answer fits."""

    run: RunId
    node: NodeId
    question: str
    schema: Mapping[str, Any]


class Answers:
    """The open questions of the runs in a journal. It blocks, briefly."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def questions(self, run: str) -> tuple[Question, ...]:
        """What a run asks, the oldest question first. Raises: `UnknownReference`, `StoreError`."""
        found = find_run(self._journal, run)
        if not self._journal.summary(found).asking:
            return ()
        asked = story_of(self._journal, found).questions.values()
        return tuple(Question(found, q.node, q.question, q.schema) for q in asked)

    def question(self, run: str, node: str) -> Question:
        """What a node asks. Raises: `UnknownReference` when it asks nothing, `StoreError`."""
        asked = {question.node: question for question in self.questions(run)}
        if NodeId(node) in asked:
            return asked[NodeId(node)]
        hint = closest(node, list(asked)) or f"{find_run(self._journal, run)} asks nothing"
        raise UnknownReference(f"{node!r} asks nothing", hint=hint)

    def give(self, question: Question, value: Any) -> bool:
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
