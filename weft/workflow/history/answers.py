"""Open questions of recorded runs, and answers from other processes."""

from __future__ import annotations

from typing import Any

from weft.core.errors import InputError, UnknownReference
from weft.core.ids import NodeId, RunId, parent_of
from weft.core.ports.journal import Journal, Letter
from weft.core.ports.queue import QueueingJournal
from weft.core.questions import PendingQuestion
from weft.validation import answer_violation
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.history.run_history import find_run, read_history


class PendingQuestions:
    """The open questions of the runs in a journal. Its methods block briefly."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def questions(self, run: str) -> tuple[PendingQuestion, ...]:
        """A run's questions, the oldest first. Raises: `UnknownReference`, `StoreError`."""
        run_id = find_run(self._journal, run)
        if not self._journal.summary(run_id).asking:
            return ()
        asked = read_history(self._journal, run_id).questions.values()
        return tuple(
            PendingQuestion(run_id, q.node, q.question, q.schema, q.tool, q.arguments)
            for q in asked
        )

    def question(self, run: str, node: str) -> PendingQuestion:
        """A node's question. Raises: `UnknownReference` when it asks nothing, `StoreError`."""
        questions = {question.node: question for question in self.questions(run)}
        if NodeId(node) in questions:
            return questions[NodeId(node)]
        approvals = [q for q in questions.values() if parent_of(q.node) == node]
        if len(approvals) == 1:  # `transfer` for `transfer/approve_1a2b`
            return approvals[0]
        hint = (
            choice_hint(node, list(questions))
            or f"{find_run(self._journal, run)} asks nothing: early is `weft signal`"
        )
        raise UnknownReference(f"{node!r} asks nothing", hint=hint)

    def give(self, question: PendingQuestion, value: Any) -> bool:
        """Leave an answer; true when a process has the run and continues it at once.

        Otherwise the answer waits for the run to be resumed. Raises: `InputError` when it does not
        fit, `StoreError`.
        """
        why = answer_violation(value, question.schema)
        if why is not None:
            raise InputError(f"the answer does not fit: {why}", node=question.node)
        self._journal.send(question.run, Letter("answer", question.node, value))
        return self._journal.summary(question.run).standing in ("running", "asking")


def has_worker(journal: Journal, run: RunId) -> bool:
    """Whether a worker of the journal's queue continues the run once its questions are answered."""
    entry = journal.queue.entry(run) if isinstance(journal, QueueingJournal) else None
    return entry is not None and entry.state in ("queued", "running", "asking")


def answered_nodes(journal: Journal, run: RunId) -> frozenset[NodeId]:
    """The nodes of a run whose answer is in the journal, and not yet taken up by the run."""
    letters = journal.pending_letters(run)
    return frozenset(each.node for each in letters if each.kind == "answer" and each.node)


class JournalHumanInputs:
    """Implements `HumanInputs` over a journal. Runs are named by whole ids; others stay unknown."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._answers = PendingQuestions(journal)

    def questions(self, run: str) -> list[dict[str, Any]]:
        self._check(run)
        return [question.data() for question in self._answers.questions(run)]

    def answer(self, run: str, node: str, value: Any) -> bool:
        self._check(run)
        return self._answers.give(self._answers.question(run, node), value)

    def _check(self, run: str) -> None:
        try:
            self._journal.summary(RunId(run))
        except UnknownReference:
            raise UnknownReference(f"there is no run {run!r}") from None
