"""A model that is never wrong: it predicts exact marginals over the valid answers.

Errors with it are due to the policy alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Slots
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.language import ListQuestion, read_question
from weft.decoding.diffusion.oracle.languages import MOST_ANSWERS, answer_table, language_of
from weft.decoding.diffusion.query import Query

AnswerTable = NDArray[np.int16]


def fit_to_canvas(table: AnswerTable, length: int) -> AnswerTable:
    """[answers, length]: filled up with terminators, or cut to the canvas."""
    if table.shape[1] >= length:
        return table[:, :length]
    ends = np.full((len(table), length - table.shape[1]), words.EOS, dtype=np.int16)
    return np.concatenate([table, ends], axis=1)


def agreeing_answers(
    table: AnswerTable, ids: NDArray[np.int64], decided: NDArray[np.bool_]
) -> AnswerTable:
    """The answers with `ids` [length] where `decided` [length]; all answers if there are none.

    So the marginals of a canvas that no answer agrees with are unconditional.
    """
    at = np.flatnonzero(decided)
    left = table[(table[:, at] == ids[at]).all(axis=1)]
    return left if len(left) else table


def log_marginals(table: AnswerTable, slots: NDArray[np.int64]) -> NDArray[np.float32]:
    """[slots, vocabulary]: the logarithm of how many answers hold a token there; -inf for none.

    Counts, not shares: equal counts stay exactly equal.
    """
    apart = words.SIZE * np.arange(len(slots))
    tokens = (table[:, slots] + apart).ravel()
    counts = np.bincount(tokens, minlength=words.SIZE * len(slots)).astype(np.float64)
    logs = np.full(len(counts), -np.inf)
    np.log(counts, where=counts > 0, out=logs)
    return logs.reshape(len(slots), words.SIZE).astype(np.float32)


class AnswerDistribution(Protocol):
    """The uniform distribution over the answers to one question."""

    def given(self, ids: NDArray[np.int64], seen: Bits, slots: Slots) -> NDArray[np.float32]:
        """[slots, vocabulary]: logits of `slots` when the `seen` slots [length] have their `ids`.

        Where no answer agrees, the unconditional ones.
        """


@lru_cache(maxsize=128)
def distribution_of(question: ListQuestion, length: int) -> AnswerDistribution:
    """On a canvas of `length` slots, which an answer fills with terminators, or is cut to.

    Raises: as `answer_table`, but not for a shuffle.
    """
    if question.operation == "shuffle" and language_of(question).count(question) > MOST_ANSWERS:
        return _ShuffleOrders(question, length)
    return _ListedAnswers(fit_to_canvas(answer_table(question), length))


class _ListedAnswers:
    def __init__(self, table: AnswerTable) -> None:
        self._table = table

    def given(self, ids: NDArray[np.int64], seen: Bits, slots: Slots) -> NDArray[np.float32]:
        return log_marginals(agreeing_answers(self._table, ids, seen), slots)


class _ShuffleOrders:
    """All orders of the items: unused items are equally likely in every open slot."""

    def __init__(self, question: ListQuestion, length: int) -> None:
        self._items = frozenset(question.items)
        self._ends = np.arange(length) >= len(question.items)

    def given(self, ids: NDArray[np.int64], seen: Bits, slots: Slots) -> NDArray[np.float32]:
        used = [int(token) for token in ids[seen & ~self._ends]]
        agrees = len(set(used)) == len(used) and self._items.issuperset(used)
        agrees = agrees and bool((ids[seen & self._ends] == words.EOS).all())
        left = sorted(self._items.difference(used)) if agrees else sorted(self._items)
        logits = np.full((len(slots), words.SIZE), -np.inf, dtype=np.float32)
        for row, slot in zip(logits, slots, strict=True):
            row[words.EOS if self._ends[slot] else left] = 0.0
        return logits


_BANNED: Final = frozenset({words.PAD, words.MASK, words.SEP})


class OracleAdapter:
    """Answers queries about canvases whose prompts are questions of list languages.

    Each slot is predicted from all other slots that are decided and seen: a decided one as if it
    were open. Ids of a query replace the canvas's, with a mask as open. Without a readable prompt
    every token is equally likely.
    """

    def __init__(self, block: int = 0) -> None:
        """`block`: size of blocks that see themselves and earlier ones; 0: all slots see all."""
        attention: Literal["full", "block_causal"] = "block_causal" if block else "full"
        self._traits = ModelTraits(
            words.SIZE, words.MASK, frozenset({words.EOS}), _BANNED, attention, block
        )

    @property
    def traits(self) -> ModelTraits:
        """Masked diffusion over the vocabulary of the list languages."""
        return self._traits

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        """Raises: `ModelRequestError` for no question, `CapabilityError` for too many answers."""
        return [self._predicted(query) for query in queries]

    def forget(self, row: int) -> None:
        """Does nothing: there is no cache."""

    def _predicted(self, query: Query) -> NDArray[np.float32]:
        canvas = query.canvas
        ids, decided = canvas.ids.copy(), ~canvas.undecided
        if query.ids is not None:
            ids[query.feed] = query.ids
            decided[query.feed] = query.ids != words.MASK
        decided[query.reach :] = False
        slots = np.concatenate([query.wanted, query.shadows])
        logits = np.zeros((len(slots), words.SIZE), dtype=np.float32)
        if decided[: canvas.first].all():
            prompt, answer = np.split(ids, [canvas.first])
            distribution = distribution_of(read_question(prompt.tolist()), len(answer))
            for rows, seen in self._alike(decided, slots):
                at = slots[rows] - canvas.first
                logits[rows] = distribution.given(answer, seen[canvas.first :], at)
        logits[:, sorted(_BANNED)] = -np.inf
        return logits

    def _alike(self, decided: Bits, slots: Slots) -> Iterator[tuple[list[int], Bits]]:
        """Rows of `slots` whose predictions depend on the same decided slots, with those slots."""
        groups: dict[bytes, tuple[list[int], Bits]] = {}
        for row, slot in enumerate(slots.tolist()):
            seen = decided.copy()
            seen[slot] = False
            if block := self._traits.block:
                seen[(slot // block + 1) * block :] = False
            groups.setdefault(seen.tobytes(), ([], seen))[0].append(row)
        yield from groups.values()
