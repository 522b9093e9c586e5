"""Choice by words, without a model: every part of a request gets its share of the tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Final

from weft.agents.catalogue.choice import ToolChoice
from weft.agents.catalogue.search import CatalogueIndex
from weft.agents.catalogue.words import clauses, terms
from weft.engine import NodeContext

_WHOLE: Final = 0.4
_CLAUSE: Final = 0.7
_TURNS: Final = 3
_LEAST_TERMS: Final = 3


class LexicalChooser:
    """Implements `ToolChooser` by the scores of `index`.

    A request ranks the tools as a whole, and so does each of its clauses with at least three words
    that say something. Three tools of the whole and one of each clause take turns, so that a small
    part of a long request is not outvoted. A ranking ends at tools with less than the share `whole`
    or `clause` of its best score, so that a clear request is offered few. Shares and turns were
    chosen on the development queries of `evals.catalogue`; 0 fills the limit.
    """

    def __init__(
        self, index: CatalogueIndex, *, whole: float = _WHOLE, clause: float = _CLAUSE
    ) -> None:
        self._index = index
        self._whole = whole
        self._clause = clause

    async def choose(self, _: NodeContext, /, request: str, limit: int) -> ToolChoice:
        return await asyncio.to_thread(self.choice, request, limit)

    def choice(self, request: str, limit: int) -> ToolChoice:
        """See `ToolChooser.choose`; tools that have no room any more are passed over."""
        chosen: list[str] = []
        spent = 0
        least = min(tool.tokens for tool in self._index.catalogue.tools.values())
        for name in self.ranking(request):
            tokens = self._index.catalogue.tools[name].tokens
            if spent + tokens <= limit:
                chosen.append(name)
                spent += tokens
            if spent + least > limit:
                break
        return ToolChoice(tuple(chosen), spent)

    def ranking(self, request: str) -> Iterator[str]:
        """The tools in the order in which they are chosen, each once."""
        parts = [part for part in clauses(request) if len(set(terms(part))) >= _LEAST_TERMS]
        rankings = [(_TURNS, self._ranked(request, self._whole))]
        if len(parts) > 1:
            rankings += [(1, self._ranked(part, self._clause)) for part in parts]
        seen: set[str] = set()
        while rankings:
            left = []
            for turns, ranking in rankings:
                fresh = list(islice((name for name in ranking if name not in seen), turns))
                for name in fresh:
                    if name not in seen:
                        seen.add(name)
                        yield name
                if fresh:
                    left.append((turns, ranking))
            rankings = left

    def _ranked(self, text: str, share: float) -> Iterator[str]:
        ranked = self._index.ranked(text)
        least = share * ranked[0][1] if ranked else 0.0
        return iter([name for name, _ in takewhile(lambda each: each[1] >= least, ranked)])
