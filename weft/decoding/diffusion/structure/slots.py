"""Values and choices on the canvas: open slots allow only tokens with a valid continuation."""

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
"""The logit of an allowed token that the model bans."""


class ValueSlots:
    """The slots of one value, at most `most`; `tokens` has `OPEN` for undecided ones.

    `end` is the token that stands for all tokens that end the value.
    """

    def __init__(self, language: TokenAutomaton, size: int, most: int) -> None:
        self.language = language
        self.most = most
        self.tokens = [OPEN] * size
        self.settled = False
        """No slot is forced now."""
        self.end: int | None = None
        self._signals: NDArray[np.bool_] = np.zeros(len(language.class_of), dtype=np.bool_)
        self._done: list[Reached] | None = None
        self._before: list[Reached] = []

    @property
    def size(self) -> int:
        return len(self.tokens)

    @property
    def need(self) -> int:
        """Slots it claims."""
        return self.size

    @property
    def full(self) -> bool:
        return OPEN not in self.tokens

    def follow(self, tokens: NDArray[np.int64], lexicon: TokenVocabulary) -> None:
        """Set the first tokens that may follow the value."""
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
        """[classes] allowed at `index`, and whether the value may end before it."""
        done = self._analysed()
        reached = self._before[index]
        ends = self._may_end(index) and bool((reached & self.language.ended).any())
        return self.language.between(reached, done[index + 1]), ends

    def restrict(self, index: int, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """`logits` [tokens] of slot `index`, -inf for tokens that are not allowed.

        `end` gets the probability of all tokens that end the value.
        """
        classes, ends = self.allowed(index)
        fine = classes[self.language.class_of]
        out = np.where(fine, np.maximum(logits, _LEAST_LOGIT), np.float32(-np.inf))
        if ends and self.end is not None:
            fine[self.end] = False
            endings = logits[self._signals & ~fine]
            top = endings.max(initial=-np.inf)
            if np.isfinite(top):
                top += np.log(np.exp(endings - top, dtype=np.float32).sum())
            out[self.end] = max(top, _LEAST_LOGIT)
        return out

    def take(self, index: int, token: int) -> bool:
        """Decide slot `index` if a word remains possible; whether it did."""
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
        """Limit the value to `size` tokens."""
        del self.tokens[size:]
        self.most = size
        self._changed()

    def grow(self, count: int) -> None:
        """Add `count` open slots."""
        self.tokens += [OPEN] * count
        self._changed()

    @property
    def may_go_on(self) -> bool:
        """Whether the value may grow."""
        if self.size >= self.most:
            return False
        self._analysed()
        return bool(self.language.after_any(self._before[-1]).any())

    def forced(self) -> tuple[int, int] | None:
        """A slot and its only allowed token, or `OPEN` where the value must end."""
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
        """For each slot, the states from which the word can be finished; `_before`: those that can
        be reached before it. Forward-backward over the slots, with weights of 0 and 1.
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
    """One branch of a choice.

    word    its first tokens; of an empty branch, those that follow the choice
    rest    the parts after them
    need    minimum tokens, `word` included unless `stays`
    head    it begins with a word of this language instead, in `room` slots
    stays   it is empty
    """

    word: tuple[int, ...]
    rest: Parts
    need: int
    head: TokenAutomaton | None = None
    room: int = 0
    stays: bool = False

    def begins(self) -> NDArray[np.int64]:
        """Its possible first tokens."""
        if self.head is None:
            return np.array(self.word[:1], dtype=np.int64)
        return np.flatnonzero(self.head.begins_within(self.room)[self.head.class_of])


class ChoiceSlot:
    """A slot that decides between branches, whose words rarely share their first token.

    Invariant: the cheapest branch takes at most `need` tokens, so that any branch is possible that
    takes no more than `need` and the unclaimed slots.
    """

    def __init__(self, branches: Sequence[ChoiceBranch], token: int = OPEN) -> None:
        self.branches = tuple(branches)
        self.token = token

    @property
    def tokens(self) -> list[int]:
        return [self.token]

    @property
    def size(self) -> int:
        return 1

    @property
    def need(self) -> int:
        """Slots it claims."""
        return max(1, min(branch.need for branch in self.branches))

    def allowed(self, slack: int) -> NDArray[np.int64]:
        """The tokens that may be taken, ascending, with `slack` unclaimed slots."""
        return np.unique(np.concatenate([branch.begins() for branch in self._fitting(slack)]))

    def take(self, token: int, slack: int) -> bool:
        """Choose the branches that begin with `token`, words before languages; whether one does."""
        fitting = [branch for branch in self._fitting(slack) if token in branch.begins()]
        words = [branch for branch in fitting if branch.head is None]
        if fitting:
            self.token = token
            self.branches = tuple(words or fitting[:1])
        return bool(fitting)

    def copy(self) -> ChoiceSlot:
        return ChoiceSlot(self.branches, self.token)

    def _fitting(self, slack: int) -> list[ChoiceBranch]:
        most = self.need + slack
        return [branch for branch in self.branches if branch.need <= most]


def distinct_branches(branches: Sequence[ChoiceBranch]) -> tuple[ChoiceBranch, ...]:
    """`branches` without those whose word is a prefix or continuation of a cheaper one."""
    distinct: list[ChoiceBranch] = []
    for branch in sorted(branches, key=lambda one: one.need):
        alike = any(_begin_alike(branch.word, one.word) for one in distinct)
        if branch.head is not None or not alike:
            distinct.append(branch)
    return tuple(branch for branch in branches if branch in distinct)


def shared_tokens(branches: Sequence[ChoiceBranch]) -> tuple[int, ...]:
    """The common prefix of all words; empty where a branch has no word."""
    if any(branch.head is not None for branch in branches):
        return ()
    count = 0
    for column in zip(*(branch.word for branch in branches), strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return branches[0].word[:count]


def branch_after(branch: ChoiceBranch, tokens: tuple[int, ...], *, again: bool) -> ChoiceBranch:
    """`branch` after its first `tokens`. `again`: they are appended to it, since they were taken
    from the text that follows the choice.
    """
    if not tokens:
        return branch
    word = branch.word[len(tokens) :]
    if branch.stays:
        return ChoiceBranch(word, (), branch.need, stays=True)
    rest = (*branch.rest, LiteralTokens(tokens)) if again else branch.rest
    return ChoiceBranch(word, rest, branch.need if again else branch.need - len(tokens))


def _begin_alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    shorter = min(len(one), len(other))
    return bool(shorter) and one[:shorter] == other[:shorter]
