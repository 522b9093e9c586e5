"""LLMCad: a tree that grows until its model is unsure, and a draft that goes on meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from weft.decoding.speculative.drafter import Drafter
from weft.decoding.speculative.drafters.cascade.fallback import Fallback
from weft.decoding.speculative.drafters.cascade.growth import Growth
from weft.decoding.speculative.drafters.model.cache import DraftCache
from weft.decoding.speculative.drafters.model.choice import Chosen
from weft.decoding.speculative.drafters.model.line import Line
from weft.decoding.speculative.drafters.overlapped.drafter import AheadDrafter, Settled
from weft.decoding.speculative.drafters.overlapped.gamma import Gamma
from weft.decoding.speculative.drafters.overlapped.method import Overlapped
from weft.decoding.speculative.drafters.overlapped.pearl import Pearl
from weft.decoding.speculative.drafters.overlapped.worker import Worker
from weft.decoding.speculative.tree import ROOT, DraftTree


class CascadeDrafter(AheadDrafter):
    """Implements `Drafter`: one sequence, with a threshold of its own."""

    def __init__(self, method: Cascade, line: Line, threshold: float) -> None:
        super().__init__(method, line)
        self.fallback = Fallback(threshold)
        self.tree = DraftTree()
        self.aside: dict[int, Chosen] = {}
        """Nodes of the tree that are not on its best path."""


class Cascade(Overlapped):
    """Implements `Method`. The target reads a tree; meanwhile its best path is drafted on.

    Where the target goes down that path and on as drafted, the next tree begins with the rest of
    that draft; else it is thrown away. Each pass of the draft model adds up to `width` nodes.
    """

    def __init__(
        self,
        name: str,
        cache: DraftCache,
        worker: Worker,
        gamma: Gamma,
        now: Callable[[], float],
        longest: int,
        *,
        width: int = 2,
        threshold: float = 0.01,
    ) -> None:
        super().__init__(name, cache, worker, gamma, Pearl(), now, longest)
        self._width = width
        self._threshold = threshold

    def begin(self) -> Drafter:
        return CascadeDrafter(self, self.cache.open(), self._threshold)

    def offer(self, asks: Sequence[tuple[AheadDrafter, int]]) -> Sequence[DraftTree]:
        growths = [self._growth(drafter, most) for drafter, most in asks]
        while growing := [
            (drafter, growth)
            for (drafter, _), growth in zip(asks, growths, strict=True)
            if growth.grows and self.cache.fits(drafter.line, len(growth.tree))
        ]:
            read = self.cache.read_trees([(row.line, growth.tree) for row, growth in growing])
            for (_, growth), logits in zip(growing, read, strict=True):
                growth.feed(logits, self.cache.stamp)
        for (drafter, _), growth in zip(asks, growths, strict=True):
            self._expect(drafter, growth)
        return [growth.tree for growth in growths]

    def _expect(self, drafter: AheadDrafter, growth: Growth) -> None:
        """From now on the best path of the tree is what the text is expected to go on with."""
        assert isinstance(drafter, CascadeDrafter)
        best = growth.best
        cut = drafter.ahead[len(best) :]  # more was drafted than may be offered
        self.thrown_away += len(cut)
        self.discard(cut)
        drafter.tree, drafter.ahead, drafter.offered = growth.tree, best, len(best)
        on_path = {id(chosen) for chosen in best}
        drafter.aside = {n: c for n, c in enumerate(growth.nodes) if id(c) not in on_path}

    def settled(self, drafter: AheadDrafter, settled: Settled) -> None:
        if isinstance(drafter, CascadeDrafter) and settled.written:
            probability = prod(chosen.confidence for chosen in settled.offered)
            drafter.fallback.learn(probability, len(settled.offered), settled.accepted)
            self._discard_aside(drafter, settled.written)

    def _discard_aside(self, drafter: CascadeDrafter, written: Sequence[int]) -> None:
        """Put on the timeline which nodes beside the best path were in vain."""
        node = ROOT
        for token in written:
            found = [n for n in drafter.tree.children(node) if drafter.tree.tokens[n] == token]
            if not found:
                break
            node = found[0]
            drafter.aside.pop(node, None)
        self.discard(list(drafter.aside.values()))
        drafter.tree, drafter.aside = DraftTree(), {}

    def _growth(self, drafter: AheadDrafter, most: int) -> Growth:
        assert isinstance(drafter, CascadeDrafter)
        return Growth(drafter.ahead, most, drafter.fallback.threshold, self._width)
