"""Conversations of a journal: the store behind a run's nodes, and threads for programs."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft.core.errors import StoreError, UnknownReference
from weft.core.ids import RunId
from weft.core.ports.conversations import ConversationStore, StoredThread, ThreadSummary
from weft.core.ports.journal import Journal
from weft.core.redaction import Redactor
from weft.core.suggestion import suggestion
from weft.core.values import Message
from weft.durability.conversations import ConversationTools, message_of, text_of
from weft.workflow.compile.conversation import thread_id
from weft.workflow.document.secrets import redactor_here
from weft.workflow.document.spec.messages import messages_of
from weft.workflow.runtime.journals import JOURNALS, JournalPlace


def conversation_tools(
    journal: Journal | None, run: Callable[[], RunId], redactor: Redactor, replayed: bool
) -> ConversationTools:
    """The threads of a run's journal; a replayed run touches none.

    Raises: `StoreError` where the run is not recorded, or its journal keeps no threads.
    """
    if journal is None and not replayed:
        hint = "name a journal: `journal=PATH`, `--journal PATH`; with fakes weft.testing has one"
        raise StoreError("a conversation is kept in a journal, and this run has none", hint=hint)
    if journal is not None and not isinstance(journal, ConversationStore):
        raise StoreError(f"the journal {type(journal).__name__} keeps no conversations")

    def run_key() -> str:
        assert journal is not None
        header = journal.header(run())  # its time: ids of pruned runs are used again
        return f"{header.run}\0{header.wall}"

    return ConversationTools(journal or _NoStore(), run_key, redactor)


class _NoStore:
    """Implements `ConversationStore`: that of a replay, which answers from the record."""

    def threads(self) -> Sequence[ThreadSummary]:
        raise self._error

    def read_thread(self, thread: str) -> StoredThread:
        del thread
        raise self._error

    def append_to_thread(
        self, thread: str, key: str, messages: Sequence[str], summary: tuple[str, int] | None = None
    ) -> bool:
        del thread, key, messages, summary
        raise self._error

    def delete_thread(self, thread: str) -> bool:
        del thread
        raise self._error

    @property
    def _error(self) -> StoreError:
        return StoreError("a replay has no conversations")


class Conversations:
    """The conversations of a journal: threads of messages by id, which outlive runs.

    `journal`: open, a path or an address; by default the user's own, as for runs. A model node with
    `conversation: "{{ thread }}"` reads its thread and appends to it. Secrets of this machine are
    stored as marks. Each method raises `StoreError` where the journal cannot be used.
    """

    def __init__(self, journal: JournalPlace | None = None) -> None:
        self._journal = journal

    def list(self) -> Sequence[ThreadSummary]:
        """All threads, by id: each with its number of messages."""
        with self._store() as store:
            return tuple(store.threads())

    def read(self, thread: str, last: int | None = None) -> tuple[Message, ...]:
        """The messages of a thread, or its `last` ones; an unknown thread is empty."""
        with self._store() as store:
            texts = store.read_thread(thread_id(thread)).messages
        return tuple(map(message_of, texts if last is None else texts[max(0, len(texts) - last) :]))

    def summary(self, thread: str) -> str:
        """The summary of the messages that have left the window; empty where there is none."""
        with self._store() as store:
            return store.read_thread(thread_id(thread)).summary

    def append(
        self,
        thread: str,
        messages: Iterable[Message | Mapping[str, Any]],
        *,
        key: str | None = None,
    ) -> bool:
        """Append messages, all or none: `weft.Message`, or mappings with `role` and `content`.

        With the `key` of an earlier append nothing is done, and the result is False. Raises:
        `InputError` for what is no message.
        """
        redactor = redactor_here()
        texts = [text_of(redactor.redact(each)) for each in messages_of(list(messages))]
        if not texts:
            return False
        with self._store() as store:
            return store.append_to_thread(
                thread_id(thread), f"own:{key or uuid.uuid4().hex}", texts
            )

    def delete(self, thread: str) -> None:
        """Remove a thread with its summary. Raises: `UnknownReference` where there is none."""
        with self._store() as store:
            if not store.delete_thread(thread_id(thread)):
                raise unknown_thread(thread, store.threads())

    @contextmanager
    def _store(self) -> Iterator[ConversationStore]:
        given = self._journal
        lent = JOURNALS.lend(given) if given is None or isinstance(given, str | Path) else None
        journal: object = given if lent is None else lent.journal
        try:
            if not isinstance(journal, ConversationStore):
                raise StoreError(f"the journal {type(journal).__name__} keeps no conversations")
            yield journal
        finally:
            if lent is not None:
                JOURNALS.give_back(lent)


def unknown_thread(thread: str, known: Iterable[ThreadSummary]) -> UnknownReference:
    """The error for a thread that the journal does not have."""
    hint = suggestion(thread, [each.thread for each in known])
    return UnknownReference(f"there is no conversation {thread!r}", hint=hint)
