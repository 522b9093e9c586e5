"""Strings of a plan: JSON's, and what models write in their place. Knows nothing around them."""

from __future__ import annotations

import re
from typing import Final

from weft.planner.text.cursor import Cursor

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


def string(cursor: Cursor) -> str:
    """The string whose opening quote is next. Newlines in it may be written as they are.

    Raises: `PlanError` for an escape that JSON does not have, and for half a character.
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


def _escaped(cursor: Cursor) -> str:
    letter = cursor.peek()
    cursor.at += 1
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter == "u" and (code := cursor.match(_HEX)):
        return chr(int(code[0], 16))
    raise cursor.error(
        f"there is no escape \\{letter}",
        'a backslash is written twice: "\\\\"',
        cursor.at - 2,
    )
