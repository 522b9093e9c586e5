"""Sequoia (arXiv 2402.12374): trees of a draft model without replacement, in the optimal shape.

The shape follows from the acceptance rate of each rank of children, and from measured times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.decoding.speculative import user_cache
from weft.decoding.speculative.acceptance import RejectionSampling
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    Drafter,
    DraftRequest,
    MethodDrafter,
    ProposalRequest,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.model.draft_cache import (
    DraftCache,
    DraftCacheMethod,
    DraftNetwork,
    DraftSequence,
    open_draft,
)
from weft.decoding.speculative.drafters.model.sequoia_tree import (
    AcceptanceByRank,
    ChildChoice,
    ChildrenWithoutReplacement,
    SequoiaTree,
    TopChildren,
    TreeShape,
    TreeShapeSearch,
    grow_trees,
)
from weft.decoding.speculative.pass_costs import costs_of
from weft.decoding.speculative.presets import Options, Preset, PublishedSpeed, switch, text, whole
from weft.decoding.speculative.trained_drafter import Fingerprint

if TYPE_CHECKING:
    from weft.decoding.network.network import Network
    from weft.decoding.speculative.pass_costs import CostCurve


WIDTH: Final = 8
"""The most children of a node."""
_RENEWED_EVERY: Final = 256
_SAVED_EVERY: Final = 32


@dataclass(frozen=True, slots=True)
class TreeSizes:
    """Sizes of trees: up to `nodes`, up to `depth` deep. `draft_s` is the time to draft a level,
    `target_s` that of a pass of the target over so many tokens; None: always the full size.
    """

    nodes: int
    depth: int
    draft_s: float = 0.0
    target_s: Callable[[int], float] | None = None

    def shape(self, ranks: Sequence[float], nodes: int) -> TreeShape:
        """The best shape for an acceptance vector, with at most `nodes`."""
        shapes = TreeShapeSearch(ranks)
        if self.target_s is None:
            return shapes.best(nodes, self.depth)
        return shapes.fastest(nodes, self.depth, self.draft_s, self.target_s)


class SequoiaDrafter(MethodDrafter):
    """Implements `Drafter`: one sequence of `SequoiaMethod`."""

    def __init__(
        self, method: SequoiaMethod, line: DraftSequence, siblings: ChildChoice, *, greedy: bool
    ) -> None:
        super().__init__(method)
        self.line = line
        self.siblings = siblings
        self.greedy = greedy
        self.drafted = DraftTree()
        """The last proposal, until its result is known."""
        self._learn = method.learn

    def extend(self, tokens: Sequence[int]) -> None:
        self._learn(self, tokens)
        self.drafted = DraftTree()
        self.line.extend(tokens)


class SequoiaMethod(DraftCacheMethod):
    """Implements `SpeculativeMethod`. `network` is the draft model, `cache` its sequences;
    `vocabulary` is the target's. Greedy and other sequences have separate acceptance vectors, kept
    in the file `path`.

    Drafts are the likeliest tokens, verified by `ExactMatch`; or, with `sample`, those of sequences
    that are not greedy are sampled without replacement, as published, and verified by
    `RejectionSampling`.
    """

    def __init__(
        self,
        network: DraftNetwork,
        cache: DraftCache,
        vocabulary: int,
        sizes: TreeSizes,
        *,
        sample: bool = False,
        path: Path | None = None,
    ) -> None:
        super().__init__("sequoia", cache, sizes.nodes, RejectionSampling() if sample else None)
        self.ranks = {True: AcceptanceByRank(WIDTH), False: AcceptanceByRank(WIDTH)}
        """By whether sequences are greedy."""
        self._network = network
        self._vocabulary = vocabulary
        self._sizes = sizes
        self._sample = sample
        self._path = path
        self._shapes: dict[tuple[bool, int], tuple[int, TreeShape]] = {}
        self._ended = 0
        self._restore()

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> Drafter:
        """The drafter of a new sequence; its samples depend on the request only."""
        greedy = request.sampling.greedy
        siblings: ChildChoice = TopChildren()
        if self._sample and not greedy:
            siblings = ChildrenWithoutReplacement(request.sampling, request.seed, self._vocabulary)
        return SequoiaDrafter(self, self.cache.open(), siblings, greedy=greedy)

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        drafters = [(_own(drafter), most) for drafter, most in asks]
        growing = [
            SequoiaTree(drafter.line, drafter.siblings, self._shape(drafter, most))
            for drafter, most in drafters
        ]
        grow_trees(self.cache, self._network, growing)
        for (drafter, _), grown in zip(drafters, growing, strict=True):
            drafter.drafted = grown.tree
        return [DraftProposal(grown.tree, source=self.name) for grown in growing]

    def learn(self, drafter: SequoiaDrafter, tokens: Sequence[int]) -> None:
        """Learn from a draft of which `tokens` were committed."""
        if drafter.drafted.tokens:
            self.ranks[drafter.greedy].observe(drafter.drafted, tokens)

    def end(self, drafter: Drafter) -> None:
        self.cache.close(_own(drafter).line)
        self._ended += 1
        if self._ended % _SAVED_EVERY == 0:
            self._save()

    def close(self) -> None:
        self._save()

    def _shape(self, drafter: SequoiaDrafter, most: int) -> TreeShape:
        """The best shape, renewed now and then."""
        if not self.cache.fits(drafter.line, self._sizes.nodes):
            return TreeShape((), 1.0)
        ranks, size = self.ranks[drafter.greedy], min(most, self._sizes.nodes)
        made, shape = self._shapes.get(
            (drafter.greedy, size), (-_RENEWED_EVERY, TreeShape((), 1.0))
        )
        if ranks.visits - made >= _RENEWED_EVERY:
            shape = self._sizes.shape(ranks.vector, size)
            self._shapes[drafter.greedy, size] = (ranks.visits, shape)
        return shape

    def _restore(self) -> None:
        saved = None if self._path is None else user_cache.read(self._path)
        if isinstance(saved, dict):
            for greedy, ranks in self.ranks.items():
                ranks.restore(saved.get("greedy" if greedy else "drawn"))

    def _save(self) -> None:
        if self._path is not None and any(ranks.visits for ranks in self.ranks.values()):
            greedy, drawn = self.ranks[True].as_json(), self.ranks[False].as_json()
            user_cache.write(self._path, {"greedy": greedy, "drawn": drawn})


def _own(drafter: Drafter) -> SequoiaDrafter:
    assert isinstance(drafter, SequoiaDrafter)
    return drafter


_MOST: Final = 64
_CONTEXT: Final = 256
"""The text length for which the sizes are chosen."""


def _make(network: Network, options: Options) -> SpeculativeMethod:
    few = network.embed([0]).device.type == "cpu"
    nodes = whole(options, "num_speculative_tokens", 16 if few else 48, 1, _MOST)
    depth = whole(options, "depth", 6 if few else 8, 1, 16)
    draft = open_draft(
        network, text(options, "model"), whole(options, "layers", 0, 0, network.layers)
    )
    sizes = TreeSizes(nodes, depth)
    if switch(options, "measured", default=True):
        target = costs_of(network)
        sizes = TreeSizes(
            nodes,
            depth,
            costs_of(draft).second(_CONTEXT),
            partial(_seconds, target.second(_CONTEXT), target.curve(_CONTEXT)),
        )
    remembers = switch(options, "remember", default=True)
    return SequoiaMethod(
        draft,
        DraftCache(draft, network.vocabulary_size),
        network.vocabulary_size,
        sizes,
        sample=switch(options, "sample", default=False),
        path=_ranks_path(network, draft) if remembers else None,
    )


def _ranks_path(network: Network, draft: Network) -> Path:
    """The file of the pair's acceptance vectors."""
    pair = repr((Fingerprint.of(network), Fingerprint.of(draft)))
    return user_cache.folder() / f"ranks-{hashlib.sha256(pair.encode()).hexdigest()[:32]}.json"


def _seconds(one: float, curve: CostCurve, tokens: int) -> float:
    return one * curve(tokens)


PRESETS = (
    Preset(
        "sequoia",
        "a draft model's tree, of the shape that pays most by measured acceptance and measured"
        " times",
        _make,
        options=(
            "num_speculative_tokens",
            "model",
            "layers",
            "depth",
            "measured",
            "sample",
            "remember",
        ),
        published=PublishedSpeed(
            5.08, "JF68M drafts for Llama-2-7B, greedy, C4, 128 nodes, A100; recalled"
        ),
    ),
)
