"""A batch of texts cut at block ends, so that attention without any mask is block-causal.

A piece of a text that ends where its block does, and sees all that was read up to there, sees its
own block and those before, and nothing else. Knows no vLLM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """Pieces of a batch, in the order of its tokens.

    starts    [pieces + 1] where each begins among the tokens of the batch, and the end
    lengths   [pieces] how far each sees, from slot 0 of its text
    texts     [pieces] which text of the batch it is of
    longest   tokens of the longest piece
    """

    starts: Numbers
    lengths: Numbers
    texts: Numbers
    longest: int


def cut(first: Numbers, tokens: Numbers, block: int) -> Cuts:
    """Text i reads `tokens[i]` tokens from its slot `first[i]` on: both [texts].

    `block` 0: no cuts, every text sees all of itself. Texts without tokens keep one empty piece.
    """
    starts, lengths, texts = [0], [], []
    for text, (begin, count) in enumerate(zip(first.tolist(), tokens.tolist(), strict=True)):
        end = begin + count
        edges = range((begin // block + 1) * block, end, block) if block else ()
        for edge in (*edges, end):
            starts.append(starts[-1] + edge - begin)
            lengths.append(edge)
            texts.append(text)
            begin = edge
    pieces = np.array(starts, dtype=np.int32)
    longest = int(np.diff(pieces).max()) if texts else 0
    return Cuts(pieces, np.array(lengths, dtype=np.int32), np.array(texts, dtype=np.int32), longest)
