"""Rows that look ahead: in each place where the text may go on, a chain of them below it.

Knows positions and what is seen; knows not what is put into the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.decoding.network.packing import HiddenStateWrite
from weft.decoding.speculative.draft import ROOT, AuxiliaryRows, DraftTree
from weft.decoding.speculative.drafter import TargetOutputs


def chains_below(
    tree: DraftTree,
    nodes: Sequence[int],
    count: int,
    token: int,
    writes: Sequence[HiddenStateWrite] = (),
) -> AuxiliaryRows:
    """`count` rows below each of `nodes`, as `rows_below`."""
    counts = [0] * (1 + len(tree))
    for node in nodes:
        counts[node - ROOT] = count
    return rows_below(tree, counts, token, writes)


def rows_below(
    tree: DraftTree, counts: Sequence[int], token: int, writes: Sequence[HiddenStateWrite] = ()
) -> AuxiliaryRows:
    """`counts` [1 + nodes] rows below the root and each node; each sees those before it there.

    They stand at the positions that would follow the node. Every row reads `token`.
    """
    under = [place + ROOT for place, count in enumerate(counts) for _ in range(count)]
    steps = [1 + row for count in counts for row in range(count)]
    depths = tree.depths
    together = np.array(under)[:, None] == np.array(under)[None]
    return AuxiliaryRows(
        tokens=(token,) * len(under),
        under=tuple(under),
        depths=tuple(int(depths[n - ROOT]) + step for n, step in zip(under, steps, strict=True)),
        sees=np.tril(together),
        writes=tuple(writes),
    )


class GuessPosition:
    """Told of every pass and every token, as a drafter is; the first tokens are the prompt.

    Guesses made at the last token that was read begin after the target's own next token. What was
    forced after that one (by a grammar) is what the first of them guessed at.
    """

    def __init__(self) -> None:
        self._behind = 1
        self._prompted = False

    @property
    def forced(self) -> int:
        """How many of the first guesses are at tokens that are known by now."""
        return max(self._behind - 1, 0)

    def see(self, seen: TargetOutputs) -> None:
        """A pass. Of a prompt, the last piece may leave out its last token, or show its logits."""
        if seen.walk is not None:
            self._behind = -len(seen.walk.path)
        else:
            self._behind = 0 if len(seen.logits) else 1

    def extend(self, tokens: Sequence[int]) -> None:
        """Tokens of the sequence."""
        if self._prompted:
            self._behind += len(tokens)
        self._prompted = True
