"""JSON that a model wrote: alone, in a code fence, or with text before and after it.

Reading is linear in the length of the text, and never chooses between two different values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final, NoReturn

from weft.core.generated_text import unfenced, without_thought

_FENCE: Final = "```"
_MARK: Final = re.compile(r"[\[\]{}\"']")
_BEGINNING: Final = re.compile(r"""\{\s*["}]|\[\s*(?:[\]\[{"]|-?\d|true|false|null)""")
"""How an object or an array begins. Trying the decoder instead would be quadratic: its errors count
lines from the beginning of the text."""
_OPENING: Final = "{["
_DEEP: Final = "it is nested too deeply"
_QUOTES: Final = "\"'"
_MOST_MARKS: Final = 10_000
_MOST_FENCES: Final = 200
_STRUCTURED: Final = frozenset({"object", "array"})


class NoJson(ValueError):
    """A text that has no JSON value, or two different ones; the message says why."""


def _refuse(constant: str) -> NoReturn:
    raise NoJson(f"{constant} is not JSON")


# Models write line breaks inside of texts.
_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_refuse)


def read_generated_json(text: str, kinds: Collection[str] = (), *, cut_off: bool = False) -> Any:
    """The JSON value in `text`, which a model wrote.

    The whole text, or the content of one code fence, may be any value. Text around a value is left
    out where the value is an object or an array, or stands in a fence. `kinds`: the JSON types that
    may be meant; empty means all. Values of other types count as text. `cut_off`: the text ends
    where it was cut, so that text after the value means that the answer is not complete.

    Raises: `NoJson` where there is no such value, where its JSON is broken, or where there are two
    different ones.
    """
    try:
        return _whole(text)
    except NoJson as error:
        why = error
    answer = without_thought(text)
    found = _Candidates(kinds)
    for content in answer.split(_FENCE, _MOST_FENCES)[1::2]:
        found.add_fenced(content)
    end = 0
    for value, after in _values(answer):
        found.add(value)
        end = after
    if not found.any or (cut_off and answer[end:].strip("`\n\r\t ")):
        raise why
    return found.value


class _Candidates:
    """Values that may be the answer: one, perhaps written several times."""

    def __init__(self, kinds: Collection[str]) -> None:
        self._kinds = kinds
        self._form: str | None = None
        self.value: Any = None

    @property
    def any(self) -> bool:
        return self._form is not None

    def add(self, value: Any) -> None:
        """Raises: `NoJson` when another value was added before."""
        if self._kinds and json_kind(value) not in self._kinds:
            return
        # In Python True equals 1, in JSON it does not.
        form = json.dumps(value, sort_keys=True)
        if self._form not in (None, form):
            raise NoJson("there are two different JSON values in it: write one")
        self._form, self.value = form, value

    def add_fenced(self, content: str) -> None:
        try:
            value = _whole(f"{_FENCE}{content}{_FENCE}")
        except NoJson:
            return  # a fence of something else; broken JSON is found where it begins
        if json_kind(value) not in _STRUCTURED:  # the others are found where they begin
            self.add(value)


def json_kind(value: Any) -> str:
    """The JSON type of `value`; "number" also for whole numbers."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | float():
            return "number"
        case dict():
            return "object"
    return "array"


def _whole(text: str) -> Any:
    try:
        return _DECODER.decode(unfenced(text).strip())
    except RecursionError:
        raise NoJson(_DEEP) from None
    except ValueError as error:
        raise NoJson(str(error)) from None


def _values(text: str) -> Iterator[tuple[Any, int]]:
    """Objects and arrays at the top level of `text`, each with its end.

    A bracket after which no JSON begins belongs to the text, and so does all up to the bracket that
    closes it. JSON that breaks off later ends the search, as a part of it would be a guess: so
    every character is read once.

    Raises: `NoJson` for broken JSON, and for text of very many brackets.
    """
    depth = at = 0
    for _ in range(_MOST_MARKS):
        mark = _MARK.search(text, at)
        if mark is None:
            return
        at = mark.end()
        if mark[0] in _QUOTES:
            if depth:
                raise NoJson(f"there is broken JSON in it, near character {at}")
        elif mark[0] not in _OPENING:
            depth = max(0, depth - 1)
        elif _BEGINNING.match(text, mark.start()) is None:
            depth += 1
        else:
            value, at = _value_at(text, mark.start())
            if depth == 0:
                yield value, at
    raise NoJson(f"there are more than {_MOST_MARKS:,} brackets and quotes around it")


def _value_at(text: str, start: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise NoJson(_DEEP) from None
    except ValueError as error:
        raise NoJson(str(error)) from None
