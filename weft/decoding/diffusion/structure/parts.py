"""Parts of a skeleton before it is laid out: texts, values of a language, and choices."""

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
    """Text that is written verbatim."""

    text: str


@dataclass(frozen=True, slots=True)
class LiteralTokens:
    """Tokens that are written verbatim."""

    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ValuePart:
    """A value: a word of a language of tokens."""

    language: TokenAutomaton


@dataclass(frozen=True, eq=False)
class ChoicePart:
    """One of several sequences, which are made on demand, because they may contain the choice.

    `key` identifies equal choices. `exits`: the first sequence is the shortest; an empty one stands
    for the text that follows the choice. `read`: its sequences contain no new parts.
    """

    key: Hashable
    make: Callable[[], Sequence[Parts]] = field(repr=False)
    exits: bool = False
    read: bool = False

    @cached_property
    def branches(self) -> tuple[Parts, ...]:
        """Its sequences, at least one."""
        return tuple(self.make())


Part: TypeAlias = "LiteralText | LiteralTokens | ValuePart | ChoicePart"
Parts: TypeAlias = tuple[Part, ...]
IMPOSSIBLE: Final = 1 << 40
"""More tokens than any room."""
_MOST_CHOICES: Final = 2000


def join_texts(parts: Sequence[Part]) -> Parts:
    """`parts` with neighbouring texts joined and without empty ones."""
    out: list[Part] = []
    for part in parts:
        if isinstance(part, LiteralText) and out and isinstance(out[-1], LiteralText):
            out[-1] = LiteralText(out[-1].text + part.text)
        elif not (isinstance(part, LiteralText) and not part.text):
            out.append(part)
    return tuple(out)


class MinimumTokens:
    """Minimum number of tokens of parts; a choice takes at least one slot."""

    def __init__(self, spell: Callable[[str], tuple[int, ...]]) -> None:
        self._spell = spell
        self._minimum: dict[Hashable, int] = {}

    def of(self, parts: Sequence[Part]) -> int:
        """The minimum of all of `parts`; at least `IMPOSSIBLE` where they never end.

        Raises: `NotASkeleton` for choices within choices without end, or text without tokens.
        """
        unknown = self._unknown(parts)
        minimum = dict.fromkeys(unknown, IMPOSSIBLE)
        changed = bool(minimum)
        while changed:  # the least fixed point: every round settles at least one choice
            changed = False
            for key, choice in unknown.items():
                least = max(1, min(self._sum(branch, minimum) for branch in _short(choice)))
                changed |= least < minimum[key]
                minimum[key] = min(least, minimum[key])
        self._minimum.update(minimum)
        return self._sum(parts, minimum)

    def _unknown(self, parts: Sequence[Part]) -> dict[Hashable, ChoicePart]:
        """The choices reachable from `parts` that are not solved yet, by key."""
        left, unknown = list(parts), dict[Hashable, ChoicePart]()
        while left:
            part = left.pop()
            if not isinstance(part, ChoicePart) or part.key in self._minimum or part.key in unknown:
                continue
            unknown[part.key] = part
            if len(unknown) > _MOST_CHOICES:
                raise NotASkeleton(f"more than {_MOST_CHOICES} choices within one another")
            left.extend(one for branch in _short(part) for one in branch)
        return unknown

    def _sum(self, parts: Sequence[Part], minimum: Mapping[Hashable, int]) -> int:
        return sum(self._one(part, minimum) for part in parts)

    def _one(self, part: Part, minimum: Mapping[Hashable, int]) -> int:
        match part:
            case LiteralText():
                return len(self._spell(part.text))
            case LiteralTokens():
                return len(part.tokens)
            case ValuePart():
                return part.language.least
            case ChoicePart():
                return self._minimum.get(part.key) or minimum[part.key]


def _short(choice: ChoicePart) -> tuple[Parts, ...]:
    """Branches among which the shortest is."""
    return choice.branches[:1] if choice.exits else choice.branches


_CACHED: Final = 256
_BYTES_OF_TOKEN: Final = 16


class ValueLanguages:
    """Automata of values, cached by pattern; `most_tokens` bounds every value."""

    def __init__(self, lexicon: TokenVocabulary, most_tokens: int) -> None:
        self.lexicon = lexicon
        self._most_tokens = most_tokens
        self._automata: dict[object, TokenAutomaton] = {}

    def value(self, pattern: Pattern) -> ValuePart:
        """A value of the language of `pattern`. Raises: `NotASkeleton`."""
        return self._made(pattern, lambda: compile_pattern(pattern))

    def string(self, pattern: Pattern | None, least: int, most: int | None) -> ValuePart:
        """The content of a string of `least` to `most` characters, without quotes.

        Raises: `NotASkeleton` for an empty language.
        """
        if least > self._most_tokens or (most is not None and most < least):
            raise NotASkeleton(f"no string has {least} to {most} characters")
        if most is not None and most >= self._most_tokens * _BYTES_OF_TOKEN:
            most = None  # more than the tokens can spell
        plain = pattern or Repetition(CharacterClass(EVERYTHING))
        return self._made(
            (pattern, least, most),
            lambda: compile_pattern(plain, in_string=True).counting(least, most),
        )

    def _made(self, key: object, make: Callable[[], ByteAutomaton]) -> ValuePart:
        if key not in self._automata:
            if len(self._automata) >= _CACHED:
                self._automata.clear()
            self._automata[key] = TokenAutomaton(make(), self.lexicon, self._most_tokens)
        return ValuePart(self._automata[key])
