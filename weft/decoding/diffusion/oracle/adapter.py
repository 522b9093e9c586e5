"""A model that is never wrong: predictions are exact marginals over the valid answers.

What goes wrong with it is the policy's doing. Knows no torch and keeps nothing of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Bits
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.answers import answers
from weft.decoding.diffusion.oracle.marginals import Table, agreeing, laid, log_marginal
from weft.decoding.diffusion.oracle.question import read
from weft.decoding.diffusion.query import Query

_BANNED: Final = frozenset({words.PAD, words.MASK, words.SEP})


class OracleAdapter:
    """Answers queries about canvases whose prompts are questions of list languages.

    Each slot is predicted from all other slots that are decided and seen: a decided one as if it
    were open. Ids of a query that stand for the canvas's are taken at their word, a mask as open;
    without a readable prompt every token is equally likely. Terminators follow the answer; a
    canvas that is too short sees the beginning of one.
    """

    def __init__(self, block: int = 0) -> None:
        """`block`: blocks of so many slots see those before and themselves only; 0: all see all."""
        attention: Literal["full", "block_causal"] = "block_causal" if block else "full"
        self._traits = Traits(
            words.SIZE, words.MASK, frozenset({words.EOS}), _BANNED, attention, block
        )

    @property
    def traits(self) -> Traits:
        """Masked diffusion over the vocabulary of the lists."""
        return self._traits

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        """Raises: `ModelRequestError` for a prompt that is no question, `CapabilityError` for one
        with too many answers.
        """
        return [self._predicted(query) for query in queries]

    def forget(self, row: int) -> None:
        """Does nothing: no row is remembered."""

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
            table = laid(answers(read(ids[: canvas.first].tolist())), canvas.length - canvas.first)
            told = _Told(table, ids[canvas.first :])
            for row, slot in enumerate(slots):
                seen = self._seen(decided, int(slot))[canvas.first :]
                logits[row] = log_marginal(told.given(seen), int(slot) - canvas.first)
        logits[:, sorted(_BANNED)] = -np.inf
        return logits

    def _seen(self, decided: Bits, slot: int) -> Bits:
        """The decided slots that the prediction of `slot` depends on."""
        seen = decided.copy()
        seen[slot] = False
        if block := self._traits.block:
            seen[(slot // block + 1) * block :] = False
        return seen


class _Told:
    """The answers that agree with what is seen: found once for all slots that see the same."""

    def __init__(self, table: Table, ids: NDArray[np.int64]) -> None:
        self._table, self._ids = table, ids
        self._found: dict[bytes, Table] = {}

    def given(self, seen: Bits) -> Table:
        key = seen.tobytes()
        if key not in self._found:
            self._found[key] = agreeing(self._table, self._ids, seen)
        return self._found[key]
