"""BM25 over bags of weighted terms, in plain Python: an inverted index with ready weights.

After Robertson and Zaragoza (The Probabilistic Relevance Framework, 2009), with their weighting of
fields: the frequency of a term is the sum of its weights in a document. The index of
`weft.agents.memory` is FTS5 of SQLite, whose stems, splits of names and weights are fixed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_K1: Final = 1.2
_B: Final = 0.5


class Bm25:
    """An index of `documents`, each a mapping from terms to weighted frequencies above 0."""

    def __init__(
        self, documents: Sequence[Mapping[str, float]], *, k1: float = _K1, b: float = _B
    ) -> None:
        lengths = [sum(document.values()) for document in documents]
        mean = (sum(lengths) / len(lengths) if lengths else 0.0) or 1.0
        postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, document in enumerate(documents):
            norm = k1 * (1 - b + b * lengths[number] / mean)
            for term, frequency in document.items():
                postings[term].append((number, frequency * (k1 + 1) / (frequency + norm)))
        self._count = len(documents)
        self._postings = dict(postings)

    def idf(self, term: str) -> float:
        """The inverse document frequency of a term; 0 for an unknown one."""
        found = len(self._postings.get(term, ()))
        return math.log(1 + (self._count - found + 0.5) / (found + 0.5)) if found else 0.0

    def scores(self, terms: Iterable[str]) -> dict[int, float]:
        """The scores of the documents with any of the terms; a repeated term counts once."""
        found: dict[int, float] = defaultdict(float)
        for term in dict.fromkeys(terms):
            idf = self.idf(term)
            for number, impact in self._postings.get(term, ()):
                found[number] += idf * impact
        return dict(found)
