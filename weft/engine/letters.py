"""Words that other processes left in the journal for a run under way: answers and cancellations.

Reads the journal when it is told to; knows no clock and no thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from weft.core.errors import UnknownReference
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Letter
from weft.engine.node import Ask


class Addressee(Protocol):
    """The run, as far as a letter may reach it."""

    @property
    def questions(self) -> Mapping[NodeId, Ask]:
        """The nodes that wait for a person."""

    def answer(self, node: NodeId, value: Any) -> None:
        """Answer the question of `node`."""

    def cancel(self, reason: str = "cancelled", node: NodeId | None = None) -> None:
        """End the run, or one node of it."""


class Letters:
    """Those of one run. An answer that comes too early waits for its question.

    Confirmations are for whoever resumes the run: the journal gives them to it again.
    """

    def __init__(self, journal: Journal, run: RunId) -> None:
        self._journal = journal
        self._run = run
        self._version: int | None = None
        self._early: dict[NodeId, Any] = {}

    def look(self, *, wait: bool = True) -> Sequence[Letter]:
        """What has come since the last look. Blocks; see `Journal.letters`. Raises: `StoreError`.

        What a look that failed did not see, the next one does.
        """
        version = self._journal.version()
        if version == self._version:
            return ()
        letters = self._journal.letters(self._run, wait=wait)
        self._version = version
        return letters

    def deliver(self, letters: Sequence[Letter], run: Addressee) -> None:
        """Tell `run` what they say. What it has no node for is of no interest to it."""
        for letter in letters:
            if letter.kind == "cancel":
                with suppress(UnknownReference):
                    run.cancel(str(letter.value or "cancelled"), letter.node)
            elif letter.kind == "answer" and letter.node is not None:
                self._early[letter.node] = letter.value
                self.asked(letter.node, run)

    def asked(self, node: NodeId, run: Addressee) -> None:
        """Answer `node` if it asks, and its answer is here."""
        if node in self._early and node in run.questions:
            run.answer(node, self._early.pop(node))
