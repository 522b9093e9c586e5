"""A model that is never wrong: predictions are exact marginals over the valid answers.

What goes wrong with it is the policy's doing. Knows no torch and keeps nothing of a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Bits, Slots
from weft.decoding.diffusion.oracle import vocabulary as words
from weft.decoding.diffusion.oracle.laws import law_of
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
        with too many answers to be listed.
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
            prompt, answer = np.split(ids, [canvas.first])
            law = law_of(read(prompt.tolist()), len(answer))
            for rows, seen in self._alike(decided, slots):
                at = slots[rows] - canvas.first
                logits[rows] = law.given(answer, seen[canvas.first :], at)
        logits[:, sorted(_BANNED)] = -np.inf
        return logits

    def _alike(self, decided: Bits, slots: Slots) -> Iterator[tuple[list[int], Bits]]:
        """Rows of `slots` whose predictions depend on the same decided slots, and on which."""
        groups: dict[bytes, tuple[list[int], Bits]] = {}
        for row, slot in enumerate(slots.tolist()):
            seen = decided.copy()
            seen[slot] = False
            if block := self._traits.block:
                seen[(slot // block + 1) * block :] = False
            groups.setdefault(seen.tobytes(), ([], seen))[0].append(row)
        yield from groups.values()
