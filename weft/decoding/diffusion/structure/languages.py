"""The languages of values, made for one lexicon; those asked for again are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.decoding.diffusion.structure.automaton import Automaton
from weft.decoding.diffusion.structure.charset import EVERYTHING
from weft.decoding.diffusion.structure.lexicon import Lexicon
from weft.decoding.diffusion.structure.lifted import Lifted
from weft.decoding.diffusion.structure.parts import Value
from weft.decoding.diffusion.structure.pattern import Chars, Pattern, Repeat, automaton
from weft.decoding.diffusion.structure.refused import NotASkeleton

_KEPT: Final = 256
_BYTES_OF_TOKEN: Final = 16


class Languages:
    """`most_tokens` bounds every value."""

    def __init__(self, lexicon: Lexicon, most_tokens: int) -> None:
        self.lexicon = lexicon
        self._most_tokens = most_tokens
        self._known: dict[object, Lifted] = {}

    def value(self, pattern: Pattern) -> Value:
        """A value that is written as `pattern` says. Raises: `NotASkeleton`."""
        return self._made(pattern, lambda: automaton(pattern))

    def string(self, pattern: Pattern | None, least: int, most: int | None) -> Value:
        """What stands between the quotes of a string of `least` to `most` characters.

        Raises: `NotASkeleton` where there is none.
        """
        if least > self._most_tokens or (most is not None and most < least):
            raise NotASkeleton(f"no string has {least} to {most} characters")
        if most is not None and most >= self._most_tokens * _BYTES_OF_TOKEN:
            most = None  # it cannot get as long as that
        plain = pattern or Repeat(Chars(EVERYTHING))
        return self._made(
            (pattern, least, most),
            lambda: automaton(plain, in_string=True).counting(least, most),
        )

    def _made(self, key: object, make: Callable[[], Automaton]) -> Value:
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = Lifted(make(), self.lexicon, self._most_tokens)
        return Value(self._known[key])
