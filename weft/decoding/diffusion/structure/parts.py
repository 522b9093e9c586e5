"""What a skeleton is made of before it is laid out: text, values of a language, and choices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

from weft.decoding.diffusion.structure.languages.automaton import EVERYTHING, ByteAutomaton
from weft.decoding.diffusion.structure.languages.errors import NotASkeleton
from weft.decoding.diffusion.structure.languages.pattern import (
    CharacterClass,
    Pattern,
    Repetition,
    compile_pattern,
)
from weft.decoding.diffusion.structure.languages.token_automaton import (
    TokenAutomaton,
    TokenVocabulary,
)


@dataclass(frozen=True, slots=True)
class LiteralText:
    """Written as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class LiteralTokens:
    """Tokens that are written as they are."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ValuePart:
    """A word of a language of tokens."""

    language: TokenAutomaton


@dataclass(frozen=True, eq=False)
class ChoicePart:
    """One of several sequences, which are known when they are asked for: they may hold the choice.

    `key` tells equal choices. `exits`: the first sequence is the shortest; an empty one stands for
    what follows the choice, which then is text. `read`: its sequences hold nothing new.
    """

    key: Hashable
    make: Callable[[], Sequence[Parts]] = field(repr=False)
    exits: bool = False
    read: bool = False

    @cached_property
    def ways(self) -> tuple[Parts, ...]:
        """Its sequences, at least one."""
        return tuple(self.make())


Part: TypeAlias = "LiteralText | LiteralTokens | ValuePart | ChoicePart"
Parts: TypeAlias = tuple[Part, ...]
IMPOSSIBLE: Final = 1 << 40
"""More tokens than there can be."""
_MOST_CHOICES: Final = 2000


def join_texts(parts: Sequence[Part]) -> Parts:
    """The same with neighbouring texts as one, and choices of one way as that way."""
    out: list[Part] = []
    for part in parts:
        if isinstance(part, LiteralText) and out and isinstance(out[-1], LiteralText):
            out[-1] = LiteralText(out[-1].text + part.text)
        elif not (isinstance(part, LiteralText) and not part.text):
            out.append(part)
    return tuple(out)


class MinimumTokens:
    """How many tokens parts take at least; a choice takes one slot while it is open."""

    def __init__(self, spell: Callable[[str], tuple[int, ...]]) -> None:
        self._spell = spell
        self._known: dict[Hashable, int] = {}

    def of(self, parts: Sequence[Part]) -> int:
        """Of all of `parts`; at least `IMPOSSIBLE` where they never end.

        Raises: `NotASkeleton` for choices within choices without end, or text without tokens.
        """
        unknown = self._unknown(parts)
        found = dict.fromkeys(unknown, IMPOSSIBLE)
        changed = bool(found)
        while changed:  # the least fixed point: every round settles one choice at least
            changed = False
            for key, choice in unknown.items():
                least = max(1, min(self._sum(way, found) for way in _short(choice)))
                changed |= least < found[key]
                found[key] = min(least, found[key])
        self._known.update(found)
        return self._sum(parts, found)

    def _unknown(self, parts: Sequence[Part]) -> dict[Hashable, ChoicePart]:
        """The choices that `parts` lead to, by key."""
        left, found = list(parts), dict[Hashable, ChoicePart]()
        while left:
            part = left.pop()
            if not isinstance(part, ChoicePart) or part.key in self._known or part.key in found:
                continue
            found[part.key] = part
            if len(found) > _MOST_CHOICES:
                raise NotASkeleton(f"more than {_MOST_CHOICES} choices within one another")
            left.extend(one for way in _short(part) for one in way)
        return found

    def _sum(self, parts: Sequence[Part], found: Mapping[Hashable, int]) -> int:
        return sum(self._one(part, found) for part in parts)

    def _one(self, part: Part, found: Mapping[Hashable, int]) -> int:
        match part:
            case LiteralText():
                return len(self._spell(part.text))
            case LiteralTokens():
                return len(part.tokens)
            case ValuePart():
                return part.language.least
            case ChoicePart():
                return self._known.get(part.key) or found[part.key]


def _short(choice: ChoicePart) -> tuple[Parts, ...]:
    """Its ways, one of which is the shortest."""
    return choice.ways[:1] if choice.exits else choice.ways


_KEPT: Final = 256
_BYTES_OF_TOKEN: Final = 16


class ValueLanguages:
    """`most_tokens` bounds every value."""

    def __init__(self, lexicon: TokenVocabulary, most_tokens: int) -> None:
        self.lexicon = lexicon
        self._most_tokens = most_tokens
        self._known: dict[object, TokenAutomaton] = {}

    def value(self, pattern: Pattern) -> ValuePart:
        """A value that is written as `pattern` says. Raises: `NotASkeleton`."""
        return self._made(pattern, lambda: compile_pattern(pattern))

    def string(self, pattern: Pattern | None, least: int, most: int | None) -> ValuePart:
        """What stands between the quotes of a string of `least` to `most` characters.

        Raises: `NotASkeleton` where there is none.
        """
        if least > self._most_tokens or (most is not None and most < least):
            raise NotASkeleton(f"no string has {least} to {most} characters")
        if most is not None and most >= self._most_tokens * _BYTES_OF_TOKEN:
            most = None  # it cannot get as long as that
        plain = pattern or Repetition(CharacterClass(EVERYTHING))
        return self._made(
            (pattern, least, most),
            lambda: compile_pattern(plain, in_string=True).counting(least, most),
        )

    def _made(self, key: object, make: Callable[[], ByteAutomaton]) -> ValuePart:
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = TokenAutomaton(make(), self.lexicon, self._most_tokens)
        return ValuePart(self._known[key])
