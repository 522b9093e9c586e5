"""Ends servings from another process, and waits until they are really gone.

Knows the registry and signals; the supervisor does the work while it lives.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

from weft.core.errors import ServeError
from weft.serving.vllm import registry
from weft.serving.vllm.entry import Entry
from weft.serving.vllm.processes import end_leftovers, end_marked, gone, refuse_windows

_POLL_S = 0.05
_BEYOND_DRAIN_S = 30.0
_NOW_S = 10.0
_TIDY_S = 10.0


def servings() -> list[Entry]:
    """Every serving there is, the oldest first. Leftovers of killed ones are ended on the way.

    Raises: `ServeError`.
    """
    refuse_windows()
    end_leftovers()
    with registry.locked():
        return registry.entries()


def chosen(words: Sequence[str]) -> list[Entry]:
    """The servings that ids or names mean, each once. Raises: `ServeError` for one that is none."""
    there = servings()
    found: dict[str, Entry] = {}
    for word in words:
        same = [entry for entry in there if word == entry.id]
        same = same or [entry for entry in there if word == entry.name]
        if not same:
            ids = ", ".join(entry.id for entry in there)
            hint = f"there are: {ids}" if there else "none is running"
            raise ServeError(f"there is no serving {word!r}", hint=hint)
        if len(same) > 1:
            ids = ", ".join(entry.id for entry in same)
            raise ServeError(f"{len(same)} servings are called {word}", hint=f"name one of: {ids}")
        found[same[0].id] = same[0]
    return list(found.values())


def stop(entry: Entry, *, now: bool = False) -> None:
    """End a serving; requests in flight have its drain time to finish, none with `now`.

    Returns when no process of it is left. A supervisor that does not obey is killed.
    Raises: `ServeError` when even that leaves something.
    """
    supervisor = entry.supervisor
    patience_s = _NOW_S if now else entry.drain_s + _BEYOND_DRAIN_S
    _signal(entry, signal.SIGQUIT if now else signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while supervisor.lives() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if supervisor.lives():
        _signal(entry, signal.SIGKILL)
    if not gone(entry.id, _TIDY_S):
        end_marked(entry.id)
        if not gone(entry.id, _TIDY_S):
            raise ServeError(f"processes of {entry.id} cannot be killed", hint="see `ps`")
    with registry.locked():
        registry.remove(entry.id)


def _signal(entry: Entry, number: signal.Signals) -> None:
    if entry.supervisor.lives():
        with suppress(ProcessLookupError):
            os.kill(entry.supervisor.pid, number)
