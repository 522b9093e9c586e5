"""Scans one JSON object or array while it is being written; stores none of it.

Finds where the value ends, or the character at which it stops being JSON. Numbers and literals are
only checked for their characters: parse the text once it is complete.
"""

from __future__ import annotations

from collections.abc import Callable

_BLANK = frozenset(" \t\n\r")
_SCALAR = frozenset("+-.0123456789eEtrufalsn")
_SCALAR_START = frozenset("-0123456789tfn")
_ESCAPES = frozenset('"\\/bfnrt')
_HEX = frozenset("0123456789abcdefABCDEF")
_CLOSER = {"{": "}", "[": "]"}
_MAX_DEPTH = 200


class _Broken(Exception):
    """The character cannot be part of the value."""


class JsonScanner:
    """Scans text in pieces of any size; blank space may come before the value.

    `complete`: the last bracket has been read. `broken`: the text cannot become JSON.
    """

    def __init__(self) -> None:
        self._closers: list[str] = []
        self._next: Callable[[str], None] = self._outermost
        self._hex_left = 0
        self._in_key = False
        self.complete = False
        self.broken = False

    def feed(self, text: str) -> int:
        """The number of characters of `text` that belong to the value."""
        if self._over():
            return 0
        try:
            for at, char in enumerate(text):
                self._next(char)
                if self.complete:
                    return at + 1
        except _Broken:
            self.broken = True
            return at
        return len(text)

    def _over(self) -> bool:
        return self.complete or self.broken

    def _outermost(self, char: str) -> None:
        if char in _CLOSER:
            self._open(char)
        elif char not in _BLANK:
            raise _Broken

    def _open(self, char: str) -> None:
        if len(self._closers) == _MAX_DEPTH:
            raise _Broken
        self._closers.append(_CLOSER[char])
        self._next = self._first_key if char == "{" else self._first_item

    def _close(self, char: str) -> None:
        if char != self._closers.pop():
            raise _Broken
        self.complete = not self._closers
        self._next = self._after_value

    def _first_key(self, char: str) -> None:
        if char == "}":
            self._close(char)
        else:
            self._key(char)

    def _key(self, char: str) -> None:
        if char == '"':
            self._in_key = True
            self._next = self._string
        elif char not in _BLANK:
            raise _Broken

    def _colon(self, char: str) -> None:
        if char == ":":
            self._next = self._value
        elif char not in _BLANK:
            raise _Broken

    def _first_item(self, char: str) -> None:
        if char == "]":
            self._close(char)
        else:
            self._value(char)

    def _value(self, char: str) -> None:
        if char in _CLOSER:
            self._open(char)
        elif char == '"':
            self._next = self._string
        elif char in _SCALAR_START:
            self._next = self._scalar
        elif char not in _BLANK:
            raise _Broken

    def _scalar(self, char: str) -> None:
        if char not in _SCALAR:
            self._after_value(char)

    def _after_value(self, char: str) -> None:
        if char == ",":
            self._next = self._key if self._closers[-1] == "}" else self._value
        elif char in "}]":
            self._close(char)
        elif char in _BLANK:
            self._next = self._after_value
        else:
            raise _Broken

    def _string(self, char: str) -> None:
        if char == '"':
            self._next = self._colon if self._in_key else self._after_value
            self._in_key = False
        elif char == "\\":
            self._next = self._escape
        elif char < " ":
            raise _Broken

    def _escape(self, char: str) -> None:
        if char == "u":
            self._hex_left = 4
            self._next = self._hex
        elif char in _ESCAPES:
            self._next = self._string
        else:
            raise _Broken

    def _hex(self, char: str) -> None:
        if char not in _HEX:
            raise _Broken
        self._hex_left -= 1
        if not self._hex_left:
            self._next = self._string
