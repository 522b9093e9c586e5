"""Arithmetic as a model writes it, read without running it: an expression becomes steps.

Knows no problem. Hostile text is refused: only digits, the four operations and brackets are read.
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(r"\s*(\d{1,6}|[-+*/()])")
_SAME: Final = str.maketrans({"\u00d7": "*", "\u00f7": "/", "\u2212": "-", "[": "(", "]": ")"})
_LATEX: Final = (("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("$", ""), ("`", ""))
_LONGEST: Final = 200


class Unreadable(Exception):
    """The text is no expression of whole numbers."""


def steps_of(text: str) -> list[str]:
    """The steps of an expression, innermost first, each "a+b=c".

    What stands after an equals sign is not read. Differences below zero and quotients that do not
    come out are no steps. Raises: `Unreadable`.
    """
    for word, sign in _LATEX:
        text = text.replace(word, sign)
    text = text.translate(_SAME).split("=")[0]
    if len(text) > _LONGEST:
        raise Unreadable(f"{len(text)} characters are no expression")
    reading = _Reading(_tokens(text))
    reading.sum()
    reading.end()
    return reading.steps


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    place = 0
    text = text.strip()
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise Unreadable(f"{text[place]!r} is no part of an expression")
        tokens.append(found[1])
        place = found.end()
    return tokens


class _Reading:
    """Reads sums of products of numbers and brackets; brackets nest at most as deep as the text."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0
        self.steps: list[str] = []

    def sum(self) -> int:
        value = self._product()
        while (sign := self._next("+-")) is not None:
            value = self._step(value, sign, self._product())
        return value

    def end(self) -> None:
        if self._place < len(self._tokens):
            raise Unreadable(f"{self._tokens[self._place]!r} comes after the end")

    def _product(self) -> int:
        value = self._atom()
        while (sign := self._next("*/")) is not None:
            value = self._step(value, sign, self._atom())
        return value

    def _atom(self) -> int:
        if self._next("(") is not None:
            value = self.sum()
            if self._next(")") is None:
                raise Unreadable("a bracket is not closed")
            return value
        if self._place < len(self._tokens) and self._tokens[self._place].isdigit():
            self._place += 1
            return int(self._tokens[self._place - 1])
        raise Unreadable("a number is missing")

    def _next(self, signs: str) -> str | None:
        if self._place < len(self._tokens) and self._tokens[self._place] in tuple(signs):
            self._place += 1
            return self._tokens[self._place - 1]
        return None

    def _step(self, a: int, sign: str, b: int) -> int:
        if sign == "/":
            if not b or a % b:
                raise Unreadable(f"{a}/{b} does not come out")
            value = a // b
        else:
            value = {"+": a + b, "-": a - b, "*": a * b}[sign]
        if not 0 <= value < 10**18:
            raise Unreadable(f"{a}{sign}{b} is out of range")
        self.steps.append(f"{a}{sign}{b}={value}")
        return value
