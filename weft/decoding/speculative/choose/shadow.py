"""A drafter's drafts followed along a text: how far they would have been accepted.

Exact where the rule is `Match`, because then the text does not depend on what is drafted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.decoding.speculative.budget.chances import Chances
from weft.decoding.speculative.choose.history import WARMTHS, warmth
from weft.decoding.speculative.tree import ROOT, DraftTree


class Shadow:
    """One draft at a time, as the drafter's own steps would be; `chances` learn, by warmth."""

    def __init__(self, chances: Sequence[Chances]) -> None:
        assert len(chances) == WARMTHS
        self._by_warmth = tuple(chances)
        self._streak = 0
        self._tree = DraftTree()
        self._node = ROOT
        self._deepest = 0
        self._right = 0

    @property
    def following(self) -> bool:
        """Whether a draft is being followed."""
        return self._deepest > 0

    @property
    def chances(self) -> Chances:
        """Of a draft that is made now."""
        return self._by_warmth[warmth(self._streak)]

    def follow(self, tree: DraftTree) -> None:
        """From the last token on; what was followed before is given up."""
        self._tree, self._node, self._right = tree, ROOT, 0
        self._deepest = int(np.max(tree.depths))

    def extend(self, token: int) -> None:
        """The text goes on with `token`."""
        if not self.following:
            self._streak = 0
            return
        children = self._tree.children(self._node)
        found = next((child for child in children if self._tree.tokens[child] == token), None)
        if children:
            self._learn(held=found is not None)
        if found is not None:
            self._node = found
            self._right += 1
            self._streak += 1
            return
        if children:
            self._streak = 0
        self._deepest = 0

    def _learn(self, *, held: bool) -> None:
        """One more token of the draft was tested; and of what was left of it at each token before.

        A drafter that is asked again there goes on as it did, nearly always: so every place of a
        text tells of a draft from there, with the warmth that it would have begun with.
        """
        before = self._streak - self._right
        for at in range(self._right + 1):
            self._by_warmth[warmth(before + at)].test(self._right - at, held=held)
