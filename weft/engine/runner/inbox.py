"""Signals that other processes leave in the journal for a running run: answers, cancellations.

Reads the journal only in `read`; uses no clock and no thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from weft.core.errors import UnknownReference
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Letter
from weft.engine.graph.node import AskHuman


class SignalTarget(Protocol):
    """The run, as far as a signal may reach it."""

    @property
    def questions(self) -> Mapping[NodeId, AskHuman]:
        """The nodes that wait for a person."""

    def answer(self, node: NodeId, value: Any) -> None:
        """Answer the question of `node`."""

    def cancel(self, reason: str = "cancelled", node: NodeId | None = None) -> None:
        """End the run, or one node of it."""


class SignalInbox:
    """The signals of one run. An early one waits: an answer for its question, the cancellation of a
    node for the node.

    `taken` are signals that the resuming process has already taken from the journal. Confirmations
    are for that process alone: the journal delivers them again.
    """

    def __init__(self, journal: Journal, run: RunId, taken: Iterable[Letter] = ()) -> None:
        self._journal = journal
        self._run = run
        self._version: int | None = None
        self._early: dict[NodeId, Any] = {}
        self._cancellations: dict[NodeId, str] = {}
        self._taken: list[Letter] = []
        for letter in taken:
            if letter.kind == "answer" and letter.node is not None:
                self._early[letter.node] = letter.value
            else:
                self._taken.append(letter)

    def read(self, *, wait: bool = True) -> Sequence[Letter]:
        """The signals since the last read. Blocks; see `Journal.letters`. Raises: `StoreError`.

        A read that fails loses nothing: the next one returns it.
        """
        version = self._journal.version()
        if version == self._version:
            return ()
        letters = self._journal.letters(self._run, wait=wait)
        self._version = version
        taken, self._taken = self._taken, []
        return [*taken, *letters]

    def deliver(self, letters: Sequence[Letter], run: SignalTarget) -> None:
        """Pass `letters` to `run`, and earlier ones for nodes that exist by now."""
        for letter in letters:
            if letter.kind == "cancel" and letter.node is not None:
                self._cancellations[letter.node] = str(letter.value or "cancelled")
            elif letter.kind == "cancel":
                run.cancel(str(letter.value or "cancelled"))
            elif letter.kind == "answer" and letter.node is not None:
                self._early[letter.node] = letter.value
                self.answer_early(letter.node, run)
        for node, reason in list(self._cancellations.items()):
            with suppress(UnknownReference):
                run.cancel(reason, node)
                del self._cancellations[node]

    def answer_early(self, node: NodeId, run: SignalTarget) -> None:
        """Answer `node` if it asks and its answer is here."""
        if node in self._early and node in run.questions:
            run.answer(node, self._early.pop(node))
