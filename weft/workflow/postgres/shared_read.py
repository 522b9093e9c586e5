"""A query whose simultaneous callers share one answer, so that a thousand runs may poll."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedRead(Generic[T]):
    """Calls `read` for all callers that wait; each gets the value of a read begun after its call.

    Where a read fails, one caller gets its error, and another one reads.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._changed = threading.Condition()
        self._begun = 0
        self._finished = 0
        self._reading = False
        self._value: T | None = None

    def __call__(self) -> T:
        """The value of a read that began after this call."""
        with self._changed:
            wanted = self._begun + 1
            while self._reading and self._finished < wanted:
                self._changed.wait()
            if self._finished >= wanted:
                assert self._value is not None
                return self._value
            self._reading = True
            self._begun += 1
            number = self._begun
        try:
            value = self._read()
        except BaseException:
            with self._changed:
                self._reading = False
                self._changed.notify_all()
            raise
        with self._changed:
            self._reading, self._finished, self._value = False, number, value
            self._changed.notify_all()
        return value
