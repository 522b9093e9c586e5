"""Parses values of a plan: JSON with references, as models write it."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from weft.planner.plan import Here, Ref, Value
from weft.planner.text.lines import PlanCursor

_ORDINARY: Final = {quote: re.compile(rf"[^{quote}\\]+") for quote in "\"'"}
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES: Final = {
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


def string(cursor: PlanCursor) -> str:
    """The next string, whose opening quote is at the cursor. It may contain newlines.

    Raises: `PlanError` for an escape that JSON does not have, and for a lone surrogate.
    """
    start = cursor.at
    quote = cursor.peek()
    cursor.at += 1
    pieces: list[str] = []
    while not cursor.take(quote):
        if ordinary := cursor.match(_ORDINARY[quote]):
            pieces.append(ordinary[0])
        elif cursor.take("\\"):
            pieces.append(_escaped(cursor))
        else:
            raise cursor.error("the string is not closed", f"end it with {quote}", start)
    try:
        return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise cursor.error("the string holds half a character", at=start) from None


def _escaped(cursor: PlanCursor) -> str:
    letter = cursor.peek()
    cursor.at += 1
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter == "u" and (code := cursor.match(_HEX)):
        return chr(int(code[0], 16))
    raise cursor.error(
        f"there is no escape \\{letter}", 'a backslash is written twice: "\\\\"', cursor.at - 2
    )


_WORDS: Final = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
_WORD: Final = re.compile(r"[^\W\d]\w*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?+([eE][+-]?[0-9]++)?+(?![\w.])")
_NUMBER_LENGTH: Final = 330
"""The most characters of a number; the longest finite one without exponent has 309 digits."""
_SOURCE: Final = re.compile(r"\$(\{\s*+)?+(?:(?P<number>[0-9]{1,9})|(?P<here>item|index))(?!\w)")
_FIELD: Final = re.compile(r"\.(?:(?P<index>[0-9]{1,9})(?!\w)|(?P<name>[^\W\d](?:[\w-]*\w)?))")
_INDEX: Final = re.compile(r"\[\s*(-?[0-9]{1,9})\s*\]")
_CALL: Final = re.compile(r"[^\W\d][\w.]*+\(")
_BARE_KEY: Final = re.compile(r"([^\W\d]\w*)\s*(?=:)")


class ValueParser:
    """Parses values at a cursor; lists, objects and paths have at most `depth` levels."""

    def __init__(self, cursor: PlanCursor, depth: int) -> None:
        self._cursor = cursor
        self._depth = depth

    def value(self, depth: int = 0) -> Value:
        """The next value, with tuples for lists. Raises: `PlanError` at its position."""
        cursor = self._cursor
        match cursor.peek():
            case '"' | "'":
                return string(cursor)
            case "$":
                return self.reference()
            case "[" | "(" | "{":
                if depth == self._depth:
                    raise cursor.error(f"more than {depth} levels of lists and objects")
                return self._object(depth) if cursor.take("{") else self._list(depth)
            case _:
                return self._scalar()

    def reference(self) -> Ref:
        """The next reference. Raises: `PlanError` at its position."""
        cursor = self._cursor
        source = cursor.match(_SOURCE)
        if source is None:
            raise cursor.error(
                f"a reference is expected, here is {cursor.ahead()}",
                "it is $ and the number of an earlier step, as in $1 or $1.name[0]; "
                "text in quotes may hold any $",
            )
        path = self._path()
        if source[1]:
            cursor.space()
            if not cursor.take("}"):
                raise cursor.error("the reference is not closed", "write $1 or ${1}")
            path += self._path()
        if len(path) > self._depth:
            raise cursor.error(f"the path has more than {self._depth} parts")
        here: Here = "index" if source["here"] == "index" else "item"
        return Ref(int(source["number"]) if source["number"] else here, tuple(path))

    def _path(self) -> list[str | int]:
        cursor = self._cursor
        path: list[str | int] = []
        while cursor.peek() in {".", "["}:
            if field := cursor.match(_FIELD):
                path.append(field["name"] or int(field["index"]))
            elif index := cursor.match(_INDEX):
                path.append(int(index[1]))
            elif cursor.text.startswith(('["', "['"), cursor.at):
                cursor.at += 1
                path.append(string(cursor))
                self._close("]", "the name of the field is followed by ]")
            else:
                raise cursor.error(
                    f"{cursor.ahead()} is no part of a reference",
                    'a field is $1.name or $1["any name"], an item $1[0]; '
                    "for all items write `for each $1` behind the call and use $item",
                )
        return path

    def _list(self, depth: int) -> tuple[Value, ...]:
        closing = "]" if self._cursor.take("[") else ")"
        if closing == ")":
            self._cursor.at += 1
        items: list[Value] = []
        while not self._at_end(closing):
            items.append(self.value(depth + 1))
            self._comma(closing)
        return tuple(items)

    def _object(self, depth: int) -> dict[str, Value]:
        cursor = self._cursor
        found: dict[str, Value] = {}
        while not self._at_end("}"):
            start = cursor.at
            name = self._key()
            if name in found:
                raise cursor.error(f"the key {name!r} is given twice", at=start)
            self._close(":", 'an object is {"key": value}')
            cursor.space()
            found[name] = self.value(depth + 1)
            self._comma("}")
        return found

    def _key(self) -> str:
        cursor = self._cursor
        if cursor.peek() in {'"', "'"}:
            return string(cursor)
        if bare := cursor.match(_BARE_KEY):
            return bare[1]
        raise cursor.error(f"a key is expected, here is {cursor.ahead()}", 'it is {"key": value}')

    def _at_end(self, closing: str) -> bool:
        self._cursor.space()
        return self._cursor.take(closing)

    def _comma(self, closing: str) -> None:
        cursor = self._cursor
        cursor.space()
        if not cursor.take(",") and cursor.peek() != closing:
            raise cursor.error(f"a comma or {closing} is expected, here is {cursor.ahead()}")

    def _close(self, literal: str, hint: str) -> None:
        cursor = self._cursor
        cursor.space()
        if not cursor.take(literal):
            raise cursor.error(f"{literal} is expected, here is {cursor.ahead()}", hint)

    def _scalar(self) -> Any:
        cursor = self._cursor
        start = cursor.at
        if number := cursor.match(_NUMBER):
            return _number(number, cursor, start)
        word = cursor.match(_WORD)
        if word and word[0] in _WORDS:
            return _WORDS[word[0]]
        cursor.at = start
        hint = 'a value is "text", 3, true, null, a [list], an {"object": 1} or a reference: $1'
        if _CALL.match(cursor.text, start):
            hint = "a call is no value: make it a step of its own, and refer to that by its number"
        raise cursor.error(f"a value is expected, here is {cursor.ahead()}", hint)


def _number(found: re.Match[str], cursor: PlanCursor, start: int) -> int | float:
    text, fraction, exponent = found[0], found[1], found[2]
    if len(text) > _NUMBER_LENGTH:
        raise cursor.error("the number is too long", at=start)
    if not fraction and not exponent:
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        raise cursor.error("the number is too large", at=start)
    return number
