"""Which secrets this process has, and one way to keep them out of what leaves it.

What a run tells is redacted where it is told; this is for all that is said outside of runs: errors,
logs, tracebacks, answers to peers.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeVar

from weft.core.redaction import Redactor

T = TypeVar("T")
_SHORTEST_FOUND: Final = 8  # of variables that nobody named
_TELLING: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(?:_|$)",
    re.IGNORECASE,
)


def named_secrets(
    names: Iterable[str] = (), environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The values of the variables `names`, and of those whose name says that it is a secret."""
    found = {name: environment[name] for name in names if environment.get(name)}
    for name in environment:
        if _tells(name) and len(value := environment[name]) >= _SHORTEST_FOUND:
            found.setdefault(name, value)
    return found


@lru_cache(maxsize=4096)
def _tells(name: str) -> bool:
    """Whether the name of a variable says that it is a secret."""
    return _TELLING.search(name) is not None


def redactor_for(found: Mapping[str, str]) -> Redactor:
    """Hides these secrets: the redactor of before, where they are the same."""
    return _redactor(tuple(found.items()))


@lru_cache(maxsize=8)
def _redactor(found: tuple[tuple[str, str], ...]) -> Redactor:
    return Redactor(dict(found))


class _Known:
    """The variables that workflows of this process name for keys, and what hides their values."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.found: dict[str, str] = {}
        self.redactor = Redactor()

    def look(self) -> None:
        found = named_secrets(sorted(self.names))
        if found != self.found:
            self.found, self.redactor = found, redactor_for(found)


_known = _Known()


def know_secrets(names: Iterable[str] = ()) -> None:
    """Look at the environment; `names` are variables that hold keys, whatever they are called."""
    _known.names.update(names)
    _known.look()


def hidden(value: T) -> T:
    """`value` without the secrets of this process, as it may be shown to people and peers."""
    return _known.redactor.hide(value)


class SecretFilter(logging.Filter):
    """Takes the secrets of this process out of what is logged, and out of its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = hidden(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text, record.exc_info = hidden(record.exc_text), None
        return True


know_secrets()
