"""The questions of recorded runs, for those who answer over a network. Knows no HTTP."""

from __future__ import annotations

from typing import Any

from weft.core.errors import UnknownReference
from weft.core.ids import RunId
from weft.core.ports.journal import Journal
from weft.workflow.runs.answers import Answers


class JournalPeople:
    """Implements `People` over a journal. A run is named by its whole id; others are not told."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._answers = Answers(journal)

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
