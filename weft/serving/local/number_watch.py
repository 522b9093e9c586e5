"""Measures, in JSON that is being written, the number that the text ends in.

Knows bytes; knows nothing of schemas or tokens.
"""

from __future__ import annotations

_BEGIN = frozenset(b"-0123456789")
EXPONENT = frozenset(b"eE")
NUMBER = _BEGIN | EXPONENT | frozenset(b"+.")


class NumberWatch:
    """`characters` is the length of that number so far; 0 outside a number."""

    def __init__(self) -> None:
        self.characters = 0
        self._in_string = False
        self._escaped = False

    def read(self, text: bytes) -> None:
        """Follow the next piece of JSON; pieces may be cut anywhere."""
        for byte in text:
            if self._in_string:
                self._inside_string(byte)
            elif byte in (NUMBER if self.characters else _BEGIN):
                self.characters += 1
            else:
                self.characters = 0
                self._in_string = byte == ord('"')

    def _inside_string(self, byte: int) -> None:
        self._in_string = byte != ord('"') or self._escaped
        self._escaped = byte == ord("\\") and not self._escaped
