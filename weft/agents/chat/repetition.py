"""Detects text that repeats itself, when a model no longer writes anything new."""

from __future__ import annotations

import re
from typing import Final

_LEAST_CHARS: Final = 200
_LONGEST_UNIT: Final = 400
_LONG_UNIT: Final = 40
_TIMES: Final = 8
_TIMES_OF_LONG: Final = 4
_COUNTED: Final = "\0"
_COUNTER: Final = re.compile(r"[0-9]+")
_LEAST_LETTERS: Final = 20
_FORM: Final = frozenset('{}[]()":=')
"""Characters of calls and JSON, whose lists may count on."""
_LONGEST_NUMBER: Final = 9
_END: Final = _TIMES * (_LONGEST_UNIT + _LONGEST_NUMBER)
"""No repetition is longer, so no more of a text is read."""
_CHECK_EVERY_CHARS: Final = 40


class RepetitionDetector:
    """Watches a text while it grows; keeps its end only, so its cost is linear in the text."""

    def __init__(self) -> None:
        self._recent = ""
        self._unchecked = 0

    def feed(self, text: str) -> bool:
        """Add `text`; whether the text now repeats itself, checked every 40 characters."""
        self._recent = (self._recent + text)[-2 * _END :]
        self._unchecked += len(text)
        if self._unchecked < _CHECK_EVERY_CHARS:
            return False
        self._unchecked = 0
        return repeats_itself(self._recent)


def repeats_itself(text: str) -> bool:
    """Whether the end of the text repeats itself.

    A sentence counts from its fourth repetition; a shorter unit from its eighth and from 200
    characters, since short answers may repeat. A sentence that differs only in a counting number,
    as in "7. the same, 8. the same", counts from its eighth repetition. White space around the text
    is ignored: streamed and complete texts are judged alike. Only the end of the text is read.
    """
    text = text[-2 * _END :].strip()[-_END:]
    return _unit(text) is not None or _counts_on(text)


def _unit(text: str, times: int = _TIMES_OF_LONG) -> str | None:
    """The unit that the text repeats at its end."""
    for length in range(1, min(_LONGEST_UNIT, len(text) // times) + 1):
        least = times if length >= _LONG_UNIT else max(_TIMES, -(-_LEAST_CHARS // length))
        unit = text[-length:]
        if text.endswith(unit * least):
            return unit
    return None


def _counts_on(text: str) -> bool:
    """Whether the text repeats itself except for one number that counts on."""
    unit = _unit(_COUNTER.sub(_COUNTED, text), _TIMES)
    if unit is None or unit.count(_COUNTED) != 1 or not _FORM.isdisjoint(unit):
        return False
    if sum(map(str.isalpha, unit)) < _LEAST_LETTERS:
        return False
    last = [
        int(number)
        for number in _COUNTER.findall(text)[-_TIMES + 1 :]
        if len(number) <= _LONGEST_NUMBER
    ]
    return len(last) == _TIMES - 1 and last == [*range(last[0], last[0] + len(last))]
