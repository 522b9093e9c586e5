"""Regular languages of characters, as trees. Knows bytes only by how characters are encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from weft.decoding.diffusion.structure.automaton import Automaton
from weft.decoding.diffusion.structure.charset import Bytes, Range, in_json_string, merged, plain
from weft.decoding.diffusion.structure.nfa import Nfa
from weft.decoding.diffusion.structure.refused import NotASkeleton

Encoding = Callable[[tuple[Range, ...]], Iterator[Bytes]]


class Pattern(Protocol):
    """A language."""

    def lay(self, nfa: Nfa, at: int, encoding: Encoding) -> int:
        """Add it to `nfa` behind state `at`; the state where it ends. Raises: `NotASkeleton`."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of `ranges`; each counts 1."""

    ranges: tuple[Range, ...]

    def lay(self, nfa: Nfa, at: int, encoding: Encoding) -> int:
        end = nfa.state()
        for path in encoding(merged(list(self.ranges))):
            nfa.read(at, path, end, 1)
        return end


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    parts: tuple[Pattern, ...]

    def lay(self, nfa: Nfa, at: int, encoding: Encoding) -> int:
        for part in self.parts:
            at = part.lay(nfa, at, encoding)
        return at


@dataclass(frozen=True, slots=True)
class Either:
    """Any one of them."""

    parts: tuple[Pattern, ...]

    def lay(self, nfa: Nfa, at: int, encoding: Encoding) -> int:
        end = nfa.state()
        for part in self.parts:
            begin = nfa.state()
            nfa.skip(at, begin)
            nfa.skip(part.lay(nfa, begin, encoding), end)
        return end


@dataclass(frozen=True, slots=True)
class Repeat:
    """`least` to `most` times; None: any number."""

    part: Pattern
    least: int = 0
    most: int | None = None

    def lay(self, nfa: Nfa, at: int, encoding: Encoding) -> int:
        for _ in range(self.least):
            at = self.part.lay(nfa, at, encoding)
        end = nfa.state()
        nfa.skip(at, end)
        if self.most is None:
            begin = nfa.state()
            nfa.skip(at, begin)
            after = self.part.lay(nfa, begin, encoding)
            nfa.skip(after, begin)
            nfa.skip(after, end)
            return end
        for _ in range(self.most - self.least):
            at = self.part.lay(nfa, at, encoding)
            nfa.skip(at, end)
        return end


def literal(text: str) -> Sequence:
    """Exactly `text`."""
    return Sequence(tuple(Chars(((ord(char), ord(char)),)) for char in text))


def automaton(pattern: Pattern, *, in_string: bool = False) -> Automaton:
    """Of what `pattern` describes; `in_string`: as it is written inside a JSON string.

    Raises: `NotASkeleton` when it is too large, or describes nothing.
    """
    nfa = Nfa()
    end = pattern.lay(nfa, nfa.start, in_json_string if in_string else plain)
    made = nfa.deterministic(end)
    if not made.accepts.any():
        raise NotASkeleton("a pattern fits nothing")
    return made
