"""Rows that look ahead: in each place where the text may go on, a chain of them below it.

Knows positions and what is seen; knows not what is put into the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.decoding.network.write import Write
from weft.decoding.speculative.auxiliary import AuxPlan
from weft.decoding.speculative.tree import ROOT, DraftTree


def chains_below(
    tree: DraftTree, nodes: Sequence[int], count: int, token: int, writes: Sequence[Write] = ()
) -> AuxPlan:
    """`count` rows below each of `nodes`, as `rows_below`."""
    counts = [0] * (1 + len(tree))
    for node in nodes:
        counts[node - ROOT] = count
    return rows_below(tree, counts, token, writes)


def rows_below(
    tree: DraftTree, counts: Sequence[int], token: int, writes: Sequence[Write] = ()
) -> AuxPlan:
    """`counts` [1 + nodes] rows below the root and each node; each sees those before it there.

    They stand at the positions that would follow the node. Every row reads `token`.
    """
    under = [place + ROOT for place, count in enumerate(counts) for _ in range(count)]
    steps = [1 + row for count in counts for row in range(count)]
    depths = tree.depths
    together = np.array(under)[:, None] == np.array(under)[None]
    return AuxPlan(
        tokens=(token,) * len(under),
        under=tuple(under),
        depths=tuple(int(depths[n - ROOT]) + step for n, step in zip(under, steps, strict=True)),
        sees=np.tril(together),
        writes=tuple(writes),
    )
