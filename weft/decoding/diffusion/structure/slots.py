"""Values and choices on the canvas: slots of which every open one may hold what keeps the rest
possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.structure.languages.token_automaton import (
    Reached,
    TokenAutomaton,
    TokenVocabulary,
)
from weft.decoding.diffusion.structure.parts import LiteralTokens, Parts

OPEN: Final = -1
_LEAST_LOGIT: Final = np.float32(-1e30)
"""The logit of a token that may stand where it is, although the model forbids it."""


class ValueSlots:
    """`tokens` holds `OPEN` where nothing is decided. `most` slots is as far as it may grow.

    `ends` are tokens that say that the value is over, `end` is the one that stands for them.
    """

    def __init__(self, language: TokenAutomaton, size: int, most: int) -> None:
        self.language = language
        self.most = most
        self.tokens = [OPEN] * size
        self.settled = False
        """Nothing of it is forced."""
        self.end: int | None = None
        self._signals: NDArray[np.bool_] = np.zeros(len(language.class_of), dtype=np.bool_)
        self._done: list[Reached] | None = None
        self._before: list[Reached] = []

    @property
    def size(self) -> int:
        return len(self.tokens)

    @property
    def need(self) -> int:
        """Slots it keeps from others."""
        return self.size

    @property
    def full(self) -> bool:
        return OPEN not in self.tokens

    def follow(self, tokens: NDArray[np.int64], lexicon: TokenVocabulary) -> None:
        """What may come after the value: the first tokens of that."""
        outside = self.language.stopping[self.language.class_of]
        signals = np.zeros(len(outside), dtype=np.bool_)
        for token in tokens.tolist():
            signals |= lexicon.beginning_with(lexicon.written(token)[0])
            signals[token] = True
        signals[sorted(lexicon.end_ids)] = True
        self._signals = signals & outside
        own = [int(token) for token in tokens if outside[token]]
        others = sorted(lexicon.end_ids)
        self.end = next(iter([*own, *others]), None)

    def allowed(self, index: int) -> tuple[NDArray[np.bool_], bool]:
        """[classes] that may stand at `index`, and whether the value may be over there."""
        done = self._analysed()
        reached = self._before[index]
        ends = self._may_end(index) and bool((reached & self.language.ended).any())
        return self.language.between(reached, done[index + 1]), ends

    def restrict(self, index: int, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """`logits` [tokens] of slot `index` with -inf where a token cannot stand.

        All probability of tokens that say that the value is over goes to `end`.
        """
        classes, ends = self.allowed(index)
        fine = classes[self.language.class_of]
        out = np.where(fine, np.maximum(logits, _LEAST_LOGIT), np.float32(-np.inf))
        if ends and self.end is not None:
            fine[self.end] = False
            said = logits[self._signals & ~fine]
            top = said.max(initial=-np.inf)
            if np.isfinite(top):
                top += np.log(np.exp(said - top, dtype=np.float32).sum())
            out[self.end] = max(top, _LEAST_LOGIT)
        return out

    def take(self, index: int, token: int) -> bool:
        """Decide slot `index`, if that leaves a word; whether it did."""
        classes, ends = self.allowed(index)
        if ends and token == self.end:
            self.close(index)
            return True
        if not classes[self.language.class_of[token]]:
            return False
        self.tokens[index] = token
        self._changed()
        return True

    def close(self, size: int) -> None:
        """The value has at most `size` tokens: a slot before may say that it ends there."""
        del self.tokens[size:]
        self.most = size
        self._changed()

    def grow(self, count: int) -> None:
        """As many slots more."""
        self.tokens += [OPEN] * count
        self._changed()

    @property
    def may_go_on(self) -> bool:
        """Whether a full value could be longer."""
        if self.size >= self.most:
            return False
        self._analysed()
        return bool(self.language.after_any(self._before[-1]).any())

    def forced(self) -> tuple[int, int] | None:
        """A slot and the only token for it, or the slot and `OPEN` where the value must be over."""
        for index, token in enumerate(self.tokens):
            if token != OPEN:
                continue
            classes, ends = self.allowed(index)
            count = int(self.language.sizes[classes].sum())
            if ends and not count:
                return index, OPEN
            if count == 1 and not ends:
                return index, int(np.flatnonzero(classes[self.language.class_of])[0])
        return None

    def copy(self) -> ValueSlots:
        other = ValueSlots(self.language, 0, self.most)
        other.tokens, other.end = list(self.tokens), self.end
        other._signals = self._signals
        other._done, other._before = self._done, self._before
        return other

    def _changed(self) -> None:
        self._done = None
        self.settled = False

    def _may_end(self, index: int) -> bool:
        return all(token == OPEN for token in self.tokens[index:])

    def _analysed(self) -> list[Reached]:
        """From where each slot on the word can be finished; `_before`: what can be read before it.

        Forwards and backwards over the slots, as for a hidden Markov model with weights of 0 and 1.
        """
        if self._done is not None:
            return self._done
        language, count = self.language, self.size
        before = [language.start]
        for token in self.tokens:
            last = before[-1]
            before.append(
                language.after_any(last) if token == OPEN else language.after(last, token)
            )
        done = [language.ended]
        for index in range(count - 1, -1, -1):
            token = self.tokens[index]
            here = (
                language.before_any(done[0]) if token == OPEN else language.before(done[0], token)
            )
            if self._may_end(index):
                here = here | language.ended
            done.insert(0, here)
        self._before, self._done = before, done
        return done


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceBranch:
    """One way a choice may go.

    word    the tokens it begins with; of one that adds nothing, those that follow the choice
    rest    what comes after them
    need    tokens it takes at least, `word` included unless `stays`
    head    it begins with a word of this language instead, which gets `room` slots
    stays   it adds nothing
    """

    word: tuple[int, ...]
    rest: Parts
    need: int
    head: TokenAutomaton | None = None
    room: int = 0
    stays: bool = False

    def begins(self) -> NDArray[np.int64]:
        """The tokens it may begin with."""
        if self.head is None:
            return np.array(self.word[:1], dtype=np.int64)
        return np.flatnonzero(self.head.begins_within(self.room)[self.head.class_of])


class ChoiceSlot:
    """Ways whose words differ in their first token, or share it with few others.

    Invariant: the cheapest way takes at most `need` tokens, so a way that takes at most as many
    more as nobody else has claimed can be gone to its end.
    """

    def __init__(self, ways: Sequence[ChoiceBranch], token: int = OPEN) -> None:
        self.ways = tuple(ways)
        self.token = token

    @property
    def tokens(self) -> list[int]:
        return [self.token]

    @property
    def size(self) -> int:
        return 1

    @property
    def need(self) -> int:
        """Slots it keeps from others."""
        return max(1, min(way.need for way in self.ways))

    def allowed(self, slack: int) -> NDArray[np.int64]:
        """The tokens that may be taken, ascending, where `slack` slots are nobody's."""
        return np.unique(np.concatenate([way.begins() for way in self._fitting(slack)]))

    def take(self, token: int, slack: int) -> bool:
        """Go a way that begins with `token`, if there is one; words come before languages."""
        fitting = [way for way in self._fitting(slack) if token in way.begins()]
        words = [way for way in fitting if way.head is None]
        if fitting:
            self.token = token
            self.ways = tuple(words or fitting[:1])
        return bool(fitting)

    def copy(self) -> ChoiceSlot:
        return ChoiceSlot(self.ways, self.token)

    def _fitting(self, slack: int) -> list[ChoiceBranch]:
        most = self.need + slack
        return [way for way in self.ways if way.need <= most]


def distinct_branches(ways: Sequence[ChoiceBranch]) -> tuple[ChoiceBranch, ...]:
    """`ways` without those that cannot be told from a cheaper one: its word begins theirs."""
    kept: list[ChoiceBranch] = []
    for way in sorted(ways, key=lambda one: one.need):
        if way.head is not None or not any(_begin_alike(way.word, one.word) for one in kept):
            kept.append(way)
    return tuple(way for way in ways if way in kept)


def shared_tokens(ways: Sequence[ChoiceBranch]) -> tuple[int, ...]:
    """The tokens that all words begin with; none where a way has no word."""
    if any(way.head is not None for way in ways):
        return ()
    count = 0
    for column in zip(*(way.word for way in ways), strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return ways[0].word[:count]


def branch_after(way: ChoiceBranch, tokens: tuple[int, ...], *, again: bool) -> ChoiceBranch:
    """`way` after the tokens that it begins with. `again`: they are written once more behind it,
    since they stand before the choice now and what follows begins with them.
    """
    if not tokens:
        return way
    word = way.word[len(tokens) :]
    if way.stays:
        return ChoiceBranch(word, (), way.need, stays=True)
    rest = (*way.rest, LiteralTokens(tokens)) if again else way.rest
    return ChoiceBranch(word, rest, way.need if again else way.need - len(tokens))


def _begin_alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    shorter = min(len(one), len(other))
    return bool(shorter) and one[:shorter] == other[:shorter]
