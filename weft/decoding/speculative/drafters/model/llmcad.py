"""LLMCad (arXiv 2309.04255): a small model grows a tree until it is unsure, the target verifies it.

The threshold adapts, and drafting continues during verification.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.core.ports.clock import SystemClock
from weft.decoding.network.network import Network
from weft.decoding.speculative.draft import ROOT, DraftTree
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    Drafter,
    DraftRequest,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.model.draft_cache import (
    DraftCache,
    DraftedToken,
    DraftSequence,
)
from weft.decoding.speculative.drafters.model.pearl import (
    OPTIONS,
    START,
    PearlPacing,
    draft_cache,
    worker,
)
from weft.decoding.speculative.drafters.model.pipelined import (
    AdaptiveGamma,
    DraftWorker,
    PipelinedDrafter,
    PipelinedMethod,
    VerifyResult,
)
from weft.decoding.speculative.presets import Options, Preset, share, switch, whole
from weft.decoding.speculative.speculation import MOST_NODES

_LEAST_THRESHOLD: Final = 1e-6
_MOST: Final = 0.95


class AdaptiveThreshold:
    """The target verifies once the probability of the whole draft is below `threshold`.

    After a fully accepted draft the threshold is halved; else it is divided by the draft's
    probability to the power of the rejected share, which raises it (arXiv 2309.04255).
    """

    def __init__(self, threshold: float = 0.01) -> None:
        self.threshold = threshold

    def learn(self, probability: float, drafted: int, right: int) -> None:
        """Learn from a draft of `drafted` tokens, of which the first `right` were accepted."""
        if not drafted:
            return
        if right == drafted:
            changed = self.threshold * 0.5
        else:
            changed = self.threshold / max(probability, _LEAST_THRESHOLD) ** (
                (drafted - right) / drafted
            )
        self.threshold = min(max(changed, _LEAST_THRESHOLD), _MOST)


_LEAST_PROBABILITY: Final = 1e-9
"""Less probable tokens are never drafted."""


class ConfidenceTree:
    """A tree that grows where the draft model is surest, up to `most` nodes.

    `seeds` are a chain from an earlier draft. After each reading of the tree the `width` tokens
    with the likeliest paths are added, except below `threshold`; the first token always is. With a
    width of 1 and no seeds it is that of the likeliest paths; larger widths need fewer readings.
    """

    def __init__(
        self, seeds: Sequence[DraftedToken], most: int, threshold: float, width: int
    ) -> None:
        self._nodes: list[DraftedToken] = []
        self._parents: list[int] = []
        self._paths: list[float] = []
        self._unread = ROOT
        """The first unread node."""
        self._waiting: list[tuple[float, int, int, DraftedToken]] = []
        self._offers = 0
        self._most = most
        self._threshold = threshold
        self._width = width
        self._full = False
        for depth, seed in enumerate(seeds[:most]):
            self._add(1.0 if not depth else self._paths[-1], depth - 1, seed)

    @property
    def tree(self) -> DraftTree:
        """The tree so far."""
        return DraftTree(tuple(node.token for node in self._nodes), tuple(self._parents))

    @property
    def grows(self) -> bool:
        """Whether the tree is to be read once more."""
        if self._full or len(self._nodes) >= self._most:
            return False
        if not self._nodes:
            return True
        return max(self._paths[max(self._unread, 0) :], default=0.0) >= self._threshold

    def feed(self, logits: NDArray[np.float32], stamp: int) -> None:
        """Add nodes by the logits [1 + nodes, vocabulary] after the root and each node."""
        before = len(self._nodes)
        for node in range(self._unread, before):
            self._offer(node, logits[node - ROOT], stamp)
        self._unread = before
        while self._waiting and len(self._nodes) < min(self._most, before + self._width):
            negative, _, parent, chosen = self._waiting[0]
            if -negative < self._threshold and self._nodes:
                break
            heapq.heappop(self._waiting)
            self._add(1.0 if parent == ROOT else self._paths[parent], parent, chosen)
        self._full = len(self._nodes) == before

    @property
    def nodes(self) -> tuple[DraftedToken, ...]:
        """The nodes of the tree."""
        return tuple(self._nodes)

    @property
    def best(self) -> list[DraftedToken]:
        """The path on which every token is the likeliest after the one before it."""
        path: list[DraftedToken] = []
        node = ROOT
        children = self._children()
        while node in children:
            node = max(children[node], key=lambda child: (self._paths[child], -child))
            path.append(self._nodes[node])
        return path

    def _children(self) -> dict[int, list[int]]:
        children: dict[int, list[int]] = {}
        for node, parent in enumerate(self._parents):
            children.setdefault(parent, []).append(node)
        return children

    def _add(self, above: float, parent: int, chosen: DraftedToken) -> None:
        self._nodes.append(chosen)
        self._parents.append(parent)
        self._paths.append(above * chosen.confidence)

    def _offer(self, node: int, logits: NDArray[np.float32], stamp: int) -> None:
        """Queue the likeliest tokens after a node as candidates."""
        weights = np.exp(logits.astype(np.float64) - logits.max())
        weights /= weights.sum()
        above = 1.0 if node == ROOT else self._paths[node]
        for child in self._children().get(node, ()):
            weights[self._nodes[child].token] = 0.0
        room = min(self._most - len(self._nodes), len(weights))
        least = np.partition(weights, -room)[-room] if room > 0 else np.inf
        for token in np.flatnonzero(weights >= max(least, _LEAST_PROBABILITY)):
            chosen = DraftedToken(int(token), float(weights[token]), None, stamp)
            self._offers += 1
            heapq.heappush(self._waiting, (-above * chosen.confidence, self._offers, node, chosen))


class CascadeDrafter(PipelinedDrafter):
    """Implements `Drafter`: one sequence, with its own threshold."""

    def __init__(self, method: CascadeMethod, line: DraftSequence, threshold: float) -> None:
        super().__init__(method, line)
        self.fallback = AdaptiveThreshold(threshold)
        self.tree = DraftTree()
        self.side_nodes: dict[int, DraftedToken] = {}
        """Nodes of the tree that are not on its best path."""


class CascadeMethod(PipelinedMethod):
    """Implements `SpeculativeMethod`: the target reads a tree, whose best path is drafted further.

    If the target takes that path and the tokens drafted after it, the next tree begins with the
    rest of that draft; else it is discarded. Each pass of the draft model adds up to `width` nodes.
    """

    def __init__(
        self,
        name: str,
        cache: DraftCache,
        worker: DraftWorker,
        gamma: AdaptiveGamma,
        now: Callable[[], float],
        longest: int,
        *,
        width: int = 2,
        threshold: float = 0.01,
    ) -> None:
        super().__init__(name, cache, worker, gamma, PearlPacing(), now, longest)
        self._width = width
        self._threshold = threshold

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> Drafter:  # noqa: ARG002
        return CascadeDrafter(self, self.cache.open(), self._threshold)

    def offer(self, asks: Sequence[tuple[PipelinedDrafter, int]]) -> Sequence[DraftTree]:
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

    def _expect(self, drafter: PipelinedDrafter, growth: ConfidenceTree) -> None:
        """Set the best path of the tree as the expected text."""
        assert isinstance(drafter, CascadeDrafter)
        best = growth.best
        cut = drafter.ahead[len(best) :]  # more was drafted than may be offered
        self.thrown_away += len(cut)
        self.discard(cut)
        drafter.tree, drafter.ahead, drafter.offered = growth.tree, best, len(best)
        on_path = {id(chosen) for chosen in best}
        drafter.side_nodes = {n: c for n, c in enumerate(growth.nodes) if id(c) not in on_path}

    def settled(self, drafter: PipelinedDrafter, settled: VerifyResult) -> None:
        if isinstance(drafter, CascadeDrafter) and settled.written:
            probability = prod(chosen.confidence for chosen in settled.offered)
            drafter.fallback.learn(probability, len(settled.offered), settled.accepted)
            self._discard_side_nodes(drafter, settled.written)

    def _discard_side_nodes(self, drafter: CascadeDrafter, written: Sequence[int]) -> None:
        """Record that nodes off the accepted path were discarded."""
        node = ROOT
        for token in written:
            matches = [n for n in drafter.tree.children(node) if drafter.tree.tokens[n] == token]
            if not matches:
                break
            node = matches[0]
            drafter.side_nodes.pop(node, None)
        self.discard(list(drafter.side_nodes.values()))
        drafter.tree, drafter.side_nodes = DraftTree(), {}

    def _growth(self, drafter: PipelinedDrafter, most: int) -> ConfidenceTree:
        assert isinstance(drafter, CascadeDrafter)
        return ConfidenceTree(drafter.ahead, most, drafter.fallback.threshold, self._width)


def _make(network: Network, options: Options) -> SpeculativeMethod:
    longest = whole(options, "num_speculative_tokens", 8, 1, MOST_NODES)
    now = SystemClock().now
    return CascadeMethod(
        "llmcad",
        draft_cache(network, options),
        worker("llmcad", options),
        AdaptiveGamma(START, longest, now, adaptive=switch(options, "adaptive", default=True)),
        now,
        longest,
        width=whole(options, "width", 2, 1, 16),
        threshold=share(options, "threshold", 0.01),
    )


PRESETS = (
    Preset(
        "llmcad",
        "a small model grows a tree until it is unsure, and drafts on while the target verifies",
        _make,
        needs="a draft model: model=FOLDER, else the target's first `layers`",
        options=(*OPTIONS, "adaptive", "width", "threshold"),
    ),
)
