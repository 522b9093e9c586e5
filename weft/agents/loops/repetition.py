"""Text that goes round in circles: a model that no longer says anything new."""

from __future__ import annotations

from typing import Final

_LEAST_CHARS: Final = 200
_LONGEST_UNIT: Final = 400
_LONG_UNIT: Final = 40
_TIMES: Final = 8
_TIMES_OF_LONG: Final = 4


def repetition(text: str) -> int | None:
    """Where the text begins to say the same again and again until its end, or None.

    Of what is repeated, the first time is not counted. A sentence counts from its fourth time,
    something shorter from its eighth and from 200 characters: short answers may well repeat.
    """
    for unit in range(1, min(_LONGEST_UNIT, len(text) // _TIMES_OF_LONG) + 1):
        least = _TIMES_OF_LONG if unit >= _LONG_UNIT else max(_TIMES, -(-_LEAST_CHARS // unit))
        if text.endswith(text[-unit:] * least):
            return _begin(text, unit)
    return None


def _begin(text: str, unit: int) -> int:
    """The end of the first of all the equal units at the end of `text`."""
    at = len(text) - unit
    while at >= unit and text[at - unit : at] == text[-unit:]:
        at -= unit
    return at + unit
