"""Long texts read piece by piece, where that makes no difference: what is read sees nothing later.

The mask of a pass grows with the square of what is read in it. Knows no weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.query import Query


def pieces(query: Query, traits: Traits, most: int) -> list[Query]:
    """Queries to be asked one after another, of at most `most` slots; the last predicts.

    It may be longer: the window is never cut, nor is a block, nor anything where all slots see each
    other.
    """
    if traits.attention == "full" or query.scratch or query.ids is not None:
        return [query]
    size = traits.block or 1
    nothing = np.empty(0, dtype=np.int64)
    found, feed = [], query.feed
    while len(feed) > most:
        end = min(int(feed[most - 1]) + 1, _uncut(query, traits)) // size * size
        taken = int(np.searchsorted(feed, end))
        if not taken:
            break
        piece = replace(
            query, feed=feed[:taken], wanted=nothing, shadows=nothing, soft=None, reach=end
        )
        found.append(piece)
        feed = feed[taken:]
    return [*found, replace(query, feed=feed)]


def _uncut(query: Query, traits: Traits) -> int:
    """From this slot on, all is read together."""
    firsts = [query.reach]
    if query.kind != "persist":
        firsts.append(query.canvas.window.start)
    if len(query.wanted):
        firsts.append(int(query.wanted[0]) - traits.shifted)
    return min(firsts)
