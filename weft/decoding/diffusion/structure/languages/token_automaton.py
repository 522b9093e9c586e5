"""An automaton over bytes as one over the tokens of a model.

Tokens that lead from every state to the same state with the same count are one class: a vocabulary
of 50,000 becomes some dozens. Tokens without bytes and banned tokens are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import ModelRequestError
from weft.decoding.diffusion.structure.languages.automaton import DEAD, START, ByteAutomaton
from weft.decoding.diffusion.structure.languages.errors import NotASkeleton

_LONGEST_BYTES: Final = 16
_CACHED: Final = 4096


class TokenizerVocabulary(Protocol):
    """A vocabulary as its tokenizer defines it."""

    @property
    def size(self) -> int:
        """The width of the model's logits."""

    def bytes_of(self, token: int) -> bytes:
        """The bytes of a token; special tokens have none."""

    def encode_plain(self, text: str) -> Sequence[int]:
        """The tokens of a text, none of them special. Raises: `ModelRequestError`."""


class TokenVocabulary:
    """The bytes of all tokens of a model; made once for each model.

    bytes     [tokens, longest] padded with 0
    lengths   [tokens]; 0: never part of a value, as tokens of more than 16 bytes are
    """

    def __init__(
        self,
        words: TokenizerVocabulary,
        banned: frozenset[int] = frozenset(),
        end_ids: frozenset[int] = frozenset(),
    ) -> None:
        self.size = words.size
        self.end_ids = end_ids
        self._words = words
        silent = banned | end_ids
        written = [b"" if n in silent else words.bytes_of(n) for n in range(words.size)]
        self._written = written
        usable = [word if len(word) <= _LONGEST_BYTES else b"" for word in written]
        self.lengths = np.array([len(word) for word in usable], dtype=np.int64)
        width = int(self.lengths.max(initial=1))
        joined = b"".join(word.ljust(width, b"\0") for word in usable)
        self.bytes: NDArray[np.uint8] = np.frombuffer(joined, dtype=np.uint8).reshape(-1, width)
        self._by_bytes: dict[bytes, int] = {}
        for token, word in enumerate(written):
            self._by_bytes.setdefault(word, token)
        self._longest = max(map(len, written), default=1)
        self._spellings: dict[str, tuple[int, ...]] = {}

    def written(self, token: int) -> bytes:
        """The bytes of a token."""
        return self._written[token]

    def beginning_with(self, first: int) -> NDArray[np.bool_]:
        """[size]: tokens whose first byte is `first`."""
        return np.asarray((self.bytes[:, 0] == first) & (self.lengths > 0), dtype=np.bool_)

    def spell(self, text: str) -> tuple[int, ...]:
        """Tokens whose bytes are exactly `text`: the tokenizer's, if it is faithful.

        Raises: `NotASkeleton` when there are none.
        """
        tokens = self._spellings.get(text)
        if tokens is None:
            tokens = self._own(text) or self._longest_first(text)
            if len(self._spellings) >= _CACHED:
                self._spellings.clear()
            self._spellings[text] = tokens
        return tokens

    def _own(self, text: str) -> tuple[int, ...]:
        """The tokenizer's tokens; empty where it changes the text or uses a silent token."""
        try:
            tokens = tuple(self._words.encode_plain(text))
        except ModelRequestError:
            return ()
        return tokens if b"".join(map(self.written, tokens)) == text.encode() else ()

    def _longest_first(self, text: str) -> tuple[int, ...]:
        left, tokens = text.encode(), []
        while left:
            for length in range(min(self._longest, len(left)), 0, -1):
                token = self._by_bytes.get(left[:length])
                if token is not None:
                    break
            else:
                raise NotASkeleton(f"no tokens of the model spell {text[:40]!r}")
            tokens.append(token)
            left = left[length:]
        return tuple(tokens)


Reached = NDArray[np.bool_]
"""[states, counts] that may have been reached; without an upper bound, the last count stands for
all above it."""

_Along: TypeAlias = tuple[tuple[int, NDArray[np.intp], NDArray[np.int32]], ...]


class TokenAutomaton:
    """A language over tokens.

    class_of   [tokens]; class 0 leads nowhere from any state
    least      minimum tokens of a word
    longest    maximum tokens of a word, up to `most_tokens`
    stopping   [classes] that never continue a complete word

    Raises: `NotASkeleton` when no word has at most `most_tokens` tokens.
    """

    def __init__(
        self, automaton: ByteAutomaton, lexicon: TokenVocabulary, most_tokens: int
    ) -> None:
        self.accepts = automaton.accepts
        self._states = automaton.states
        self._bounded = automaton.most is not None
        top = automaton.most if automaton.most is not None else automaton.least
        self._counts = top + 1
        self._least_count = automaton.least
        next_states, added, which = _words(automaton, lexicon)
        # beyond the bound all counts are equal
        most_added = top + 1 if self._bounded else top
        classes, self._next, self._added = _classes(next_states, np.minimum(added, most_added))
        self.class_of: NDArray[np.int64] = classes[which]
        self.stopping: NDArray[np.bool_] = (self._next[:, self.accepts] == DEAD).all(axis=1)
        self.sizes = np.bincount(self.class_of, minlength=len(self._next))
        self._steps = self._by_count()
        self.least, self.longest = self._lengths(most_tokens)
        self._alongs: dict[int, _Along] = {}
        self._beginnings: dict[int, NDArray[np.bool_]] = {}

    @property
    def start(self) -> Reached:
        """The state before the first token."""
        reached = np.zeros((self._states, self._counts), dtype=np.bool_)
        reached[START, 0] = True
        return reached

    @property
    def ended(self) -> Reached:
        """The states in which a word is complete."""
        fine = np.arange(self._counts) >= self._least_count
        done: Reached = self.accepts[:, None] & fine
        return done

    def after_any(self, reached: Reached) -> Reached:
        """The states after any one token."""
        out = np.zeros_like(reached)
        flat = reached.astype(np.float32)
        for count, step in self._steps.items():
            np.logical_or(out, self._moved(step.T @ flat > 0, count), out=out)
        return out

    def after(self, reached: Reached, token: int) -> Reached:
        """The states after `token`."""
        out = np.zeros_like(reached)
        for count, states, nexts in self._along(token):
            moved = self._moved(reached, count)
            for state, to in zip(states, nexts, strict=True):
                out[to] |= moved[state]
        return out

    def before_any(self, done: Reached) -> Reached:
        """The states from which some token leads into `done`."""
        out = np.zeros_like(done)
        for count, step in self._steps.items():
            np.logical_or(out, step @ self._moved_back(done, count).astype(np.float32) > 0, out=out)
        return out

    def before(self, done: Reached, token: int) -> Reached:
        """The states from which `token` leads into `done`."""
        out = np.zeros_like(done)
        for count, states, nexts in self._along(token):
            out[states] = self._moved_back(done, count)[nexts]
        return out

    def between(self, reached: Reached, done: Reached) -> NDArray[np.bool_]:
        """[classes]: those that lead from `reached` into `done`."""
        fine = np.zeros((len(self._next), self._states), dtype=np.bool_)
        flat = reached.astype(np.float32)
        for count in self._steps:
            leads = flat @ self._moved_back(done, count).T.astype(np.float32) > 0
            leads[:, DEAD] = False
            along = np.take_along_axis(leads.T, self._next, axis=0)
            fine |= along & (self._added == count)
        return np.asarray(fine.any(axis=1), dtype=np.bool_)

    def begins_within(self, tokens: int) -> NDArray[np.bool_]:
        """[classes]: those that can begin a word of one to `tokens` tokens."""
        if tokens not in self._beginnings:
            done = self.ended
            for _ in range(tokens - 1):
                done = done | self.before_any(done)
            self._beginnings[tokens] = self.between(self.start, done)
        return self._beginnings[tokens]

    def _moved(self, reached: Reached, count: int) -> Reached:
        """Shift counts by `count`; those above the top are dropped, or stay there if unbounded."""
        out = np.zeros_like(reached)
        out[:, count:] = reached[:, : max(0, self._counts - count)]
        if not self._bounded and count:
            out[:, -1] |= reached[:, max(0, self._counts - count) :].any(axis=1)
        return out

    def _moved_back(self, done: Reached, count: int) -> Reached:
        out = np.zeros_like(done)
        split = max(0, self._counts - count)
        out[:, :split] = done[:, count:]
        if not self._bounded:
            out[:, split:] = done[:, -1:]
        return out

    def _along(self, token: int) -> _Along:
        """For each count: the states that `token` leads on from, and their successors."""
        kind = int(self.class_of[token])
        if kind not in self._alongs:
            live = np.flatnonzero(self._next[kind])
            added = self._added[kind, live]
            self._alongs[kind] = tuple(
                (count, live[added == count], self._next[kind, live[added == count]])
                for count in np.unique(added).tolist()
            )
        return self._alongs[kind]

    def _by_count(self) -> dict[int, NDArray[np.float32]]:
        """[states, states] for each count: whether some token leads from one to the other."""
        steps: dict[int, NDArray[np.float32]] = {}
        states = np.broadcast_to(np.arange(self._states), self._next.shape)
        live = self._next != DEAD
        for count in np.unique(self._added[live]).tolist():
            here = live & (self._added == count)
            step = np.zeros((self._states, self._states), dtype=np.float32)
            step[states[here], self._next[here]] = 1.0
            steps[count] = step
        return steps

    def _lengths(self, most_tokens: int) -> tuple[int, int]:
        reached, ended = self.start, self.ended
        lengths = []
        for length in range(most_tokens + 1):
            if (reached & ended).any():
                lengths.append(length)
            reached = self.after_any(reached)
            if not reached.any():
                break
        if not lengths:
            raise NotASkeleton(f"no value of it has at most {most_tokens} tokens")
        return lengths[0], lengths[-1]


def _words(
    automaton: ByteAutomaton, lexicon: TokenVocabulary
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.intp]]:
    """[words, states]: the successor of each state, and the count; then the word of each token.

    Bytes with the same effect everywhere are one symbol; tokens of the same symbols are one word.
    """
    columns = np.concatenate([automaton.table, automaton.counts]).T
    _, symbol, symbols = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    symbols = symbols.reshape(-1).astype(np.uint8)
    text = symbols[lexicon.bytes].astype(np.int16)
    text[np.arange(text.shape[1]) >= lexicon.lengths[:, None]] = -1
    rows = np.ascontiguousarray(text).view(np.dtype((np.void, text.dtype.itemsize * text.shape[1])))
    _, first, which = np.unique(rows.reshape(-1), return_index=True, return_inverse=True)
    table, counts = automaton.table[:, symbol], automaton.counts[:, symbol]
    state = np.broadcast_to(np.arange(automaton.states, dtype=np.int32), (len(first), len(table)))
    state, added = state.copy(), np.zeros((len(first), len(table)), dtype=np.int32)
    unique = text[first]
    for index in range(unique.shape[1]):
        here = unique[:, index] >= 0
        if not here.any():
            break
        byte = unique[here, index][:, None]
        added[here] += counts[state[here], byte]
        state[here] = table[state[here], byte]
    state[lexicon.lengths[first] == 0] = DEAD
    added[state == DEAD] = 0
    return state, added, which.reshape(-1)


def _classes(
    next_states: NDArray[np.int32], added: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """The class of each word, then [classes, states]: the successor and the count."""
    dead = (np.zeros_like(next_states[0]).tobytes(), np.zeros_like(added[0]).tobytes())
    numbers = {dead: 0}
    firsts = [-1]
    class_of = np.zeros(len(next_states), dtype=np.int64)
    for word, key in enumerate(zip(map(bytes, next_states), map(bytes, added), strict=True)):
        number = numbers.setdefault(key, len(numbers))
        if number == len(firsts):
            firsts.append(word)
        class_of[word] = number
    representatives = np.array(firsts[1:], dtype=np.int64)
    zero = np.zeros((1, next_states.shape[1]), dtype=np.int32)
    return (
        class_of,
        np.concatenate([zero, next_states[representatives]]),
        np.concatenate([zero, added[representatives]]),
    )
