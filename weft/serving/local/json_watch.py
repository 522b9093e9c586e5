"""Measures, in JSON that is being written, the number or string that the text ends in.

Knows bytes; knows nothing of schemas or tokens.
"""

from __future__ import annotations

_BEGIN = frozenset(b"-0123456789")
EXPONENT = frozenset(b"eE")
NUMBER = _BEGIN | EXPONENT | frozenset(b"+.")
QUOTE = frozenset(b'"')


class JsonWatch:
    """`number_chars` and `string_chars` are 0 outside a number or string.

    A string's opening quote counts as its first character.
    """

    def __init__(self) -> None:
        self.number_chars = 0
        self.string_chars = 0
        self._escaped = False

    def read(self, text: bytes) -> None:
        """Follow the next piece of JSON; pieces may be cut anywhere."""
        for byte in text:
            if self.string_chars:
                self._inside_string(byte)
            elif byte in (NUMBER if self.number_chars else _BEGIN):
                self.number_chars += 1
            else:
                self.number_chars = 0
                self.string_chars = int(byte in QUOTE)

    def _inside_string(self, byte: int) -> None:
        if byte in QUOTE and not self._escaped:
            self.string_chars = 0
            return
        self.string_chars += byte & 0xC0 != 0x80  # not for the later bytes of a character
        self._escaped = byte == ord("\\") and not self._escaped
