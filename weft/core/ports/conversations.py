"""The store of conversations: threads of messages by id, which outlive runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A thread: its id, the number of its messages, and those that its summary covers."""

    thread: str
    messages: int
    summarized: int = 0


@dataclass(frozen=True, slots=True)
class StoredThread:
    """The messages of a thread as JSON texts, the first has the number 1.

    `summary` stands for the first `summarized` messages; empty where there is none.
    """

    messages: tuple[str, ...] = ()
    summary: str = ""
    summarized: int = 0


@runtime_checkable
class ConversationStore(Protocol):
    """Keeps threads of messages. Its methods block briefly, from any thread.

    Each raises `StoreError` where the store cannot be used.
    """

    def threads(self) -> Sequence[ThreadSummary]:
        """All threads, by id."""

    def read_thread(self, thread: str) -> StoredThread:
        """A thread; an unknown one is empty."""

    def append_to_thread(
        self, thread: str, key: str, messages: Sequence[str], summary: tuple[str, int] | None = None
    ) -> bool:
        """Append all `messages` in one transaction; False if `key` was appended before.

        `summary`: a text, and how many of the first messages it stands for; it replaces one that
        stands for fewer.
        """

    def delete_thread(self, thread: str) -> bool:
        """Remove a thread with its summary; False if there is none."""
