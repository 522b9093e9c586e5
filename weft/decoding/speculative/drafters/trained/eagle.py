"""EAGLE-style drafter: one more layer on the features of the target's own layers.

After EAGLE (arXiv 2401.15077), EAGLE-2's trees (2406.16858) and EAGLE-3's features (2503.01840).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.network.network import Network
from weft.decoding.speculative.draft import ROOT, DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    BaseMethod,
    DraftRequest,
    ProposalRequest,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.trained.feature_layers import (
    DraftHead,
    DraftVocabularyHead,
    Eagle3Layer,
    EagleLayer,
    EagleShape,
    FeatureDrafter,
    LayerCache,
    read_form,
    read_shape,
)
from weft.decoding.speculative.drafters.trained.published.checkpoint import is_published
from weft.decoding.speculative.drafters.trained.published.eagle3 import read_eagle3
from weft.decoding.speculative.presets import Options, Preset, PublishedSpeed, switch, text, whole
from weft.decoding.speculative.speculation import MOST_NODES
from weft.decoding.speculative.trained_drafter import TrainedDrafter, find


class DynamicTree:
    """EAGLE-2's dynamic tree (arXiv 2406.16858): grown where it is likely, cut to the best nodes.

    It grows level by level: the `width` likeliest nodes of a level get `width` children each.
    Probabilities only choose nodes: acceptance treats them as chosen by a rule.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._scores: list[float] = []
        self.frontier: list[int] = [ROOT]
        """The nodes that get children next."""

    def token(self, node: int) -> int:
        """The token of a node."""
        return self._tokens[node]

    def parent(self, node: int) -> int:
        """The parent of a node, or `ROOT`."""
        return self._parents[node]

    def grow(self, tokens: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        """Add children to the frontier: tokens, scores [frontier, width or less] with the log
        probabilities of the tokens after each node, distinct for each node.
        """
        children: list[int] = []
        for parent, row, logs in zip(self.frontier, tokens, scores, strict=True):
            above = 0.0 if parent == ROOT else self._scores[parent]
            for token, score in zip(row, logs, strict=True):
                children.append(len(self._tokens))
                self._tokens.append(int(token))
                self._parents.append(parent)
                self._scores.append(above + float(score))
        self.frontier = sorted(self._best(children, self._width))

    def tree(self, most: int) -> DraftTree:
        """The `most` likeliest nodes; paths are whole, as no node is likelier than its parent."""
        nodes = sorted(self._best(range(len(self._tokens)), most))
        place = {ROOT: ROOT} | {node: at for at, node in enumerate(nodes)}
        return DraftTree(
            tuple(self._tokens[node] for node in nodes),
            tuple(place[self._parents[node]] for node in nodes),
        )

    def _best(self, nodes: Sequence[int], most: int) -> list[int]:
        # of equals the earlier first, so that parents come before their children
        return sorted(nodes, key=lambda node: (-self._scores[node], node))[:most]


@dataclass(frozen=True, slots=True, eq=False)
class EagleRows:
    """Rows of one sequence for the layer: `states` [rows, width] with the `tokens` after them. All
    tensors are on the device of the states.

    positions   [rows]
    sees        bool [rows, rows of the memory before + rows]
    """

    memory: LayerCache
    tokens: Sequence[int]
    states: torch.Tensor
    positions: torch.Tensor
    sees: torch.Tensor


class EagleSequence:
    """A tree that grows after the rows in `memory`. Committed rows come first, once."""

    def __init__(self, memory: LayerCache, growth: DynamicTree, most: int) -> None:
        self.growth = growth
        self.most = most
        self.states = torch.empty(0)
        """[frontier, width]: states of the nodes that get children next."""
        self._memory = memory
        self._base = 0
        self._drafted = 0
        self._paths: dict[int, tuple[int, ...]] = {ROOT: ()}
        """The drafted rows on the path to each read node, its own last."""
        self._row = {ROOT: 0}
        """The row of each node of the last read level."""

    def committed(self, tokens: Sequence[int], states: torch.Tensor) -> EagleRows:
        """Rows of committed tokens: the states before them, and the tokens."""
        before = self._memory.length
        self._base = before + len(tokens)
        positions = torch.arange(before, self._base, device=states.device)
        sees = torch.arange(self._base, device=states.device) <= positions[:, None]
        return EagleRows(self._memory, tokens, states, positions, sees)

    def level(self) -> EagleRows:
        """The frontier's nodes, each with its parent's state."""
        nodes = self.growth.frontier
        parents = [self.growth.parent(node) for node in nodes]
        sees = torch.zeros(len(nodes), self._base + self._drafted + len(nodes), dtype=torch.bool)
        sees[:, : self._base] = True
        for row, (node, parent) in enumerate(zip(nodes, parents, strict=True)):
            self._paths[node] = (*self._paths[parent], self._drafted + row)
            sees[row, [self._base + column for column in self._paths[node]]] = True
        # the first drafted row follows the last committed one
        place = self._base + len(self._paths[nodes[0]]) - 1
        states = self.states[[self._row[parent] for parent in parents]]
        self._drafted += len(nodes)
        self._row = {node: row for row, node in enumerate(nodes)}
        tokens = [self.growth.token(node) for node in nodes]
        positions = torch.full((len(nodes),), place, device=states.device)
        return EagleRows(self._memory, tokens, states, positions, sees.to(states.device))

    def forget(self) -> None:
        """Drop all but committed rows from the memory."""
        self._memory.crop(self._base)


PIECE: Final = 256
"""The most rows of a sequence in a pass: memory grows with the square of it."""


@dataclass(frozen=True, slots=True)
class EagleOptions:
    """Trees of at most `depth` levels, whose `width` likeliest nodes grow; width 1 is a chain.
    `nodes`: the most drafted tokens. The defaults are the authors' for a large accelerator.

    Raises: `ValueError` for sizes below one.
    """

    depth: int = 7
    width: int = 10
    nodes: int = 59

    def __post_init__(self) -> None:
        if min(self.depth, self.width, self.nodes) < 1:
            raise ValueError(f"no tree is of {self}")


@dataclass(frozen=True, slots=True)
class DraftTables:
    """Head and embeddings of a drafter, where they are not the target's."""

    head: DraftHead | None = None
    embed: Callable[[Sequence[int]], torch.Tensor] | None = None


class EagleModel:
    """Weights for all sequences of `target`; drafts only `tokens` [draft vocabulary].

    `taps`: layers of the target whose states it reads; `forwards` counts passes of the layer.
    """

    def __init__(
        self,
        layer: EagleLayer | Eagle3Layer,
        taps: tuple[int, ...],
        tokens: torch.Tensor,
        target: Network,
        options: EagleOptions,
        own: DraftTables | None = None,
    ) -> None:
        like = target.embed([0])
        self.forwards = 0
        self.taps = taps
        self.options = options
        self.layer: EagleLayer | Eagle3Layer = (
            layer.to(like.device, like.dtype).eval().requires_grad_(False)
        )
        own = own or DraftTables()
        self._head = own.head or DraftVocabularyHead(target, tokens)
        self._embed = own.embed or target.embed

    def draft(
        self, lines: Sequence[EagleSequence], unread: Sequence[tuple[Sequence[int], torch.Tensor]]
    ) -> list[DraftTree]:
        """Commit the `unread` of each sequence, tokens with the features before them, [rows, taps *
        width]; then grow a tree on each.
        """
        with torch.inference_mode():
            self._commit(lines, unread)
            for level in range(self.options.depth):
                growing = [line for line in lines if line.most > level]
                if level:
                    read = self._read([line.level() for line in growing])
                    for line, states in zip(growing, read, strict=True):
                        line.states = states
                self._grow(growing)
        for line in lines:
            line.forget()
        return [line.growth.tree(line.most) for line in lines]

    def _commit(
        self, lines: Sequence[EagleSequence], unread: Sequence[tuple[Sequence[int], torch.Tensor]]
    ) -> None:
        longest = max((len(tokens) for tokens, _ in unread), default=0)
        for first in range(0, longest, PIECE):
            piece = slice(first, first + PIECE)
            reading = [
                (line, line.committed(tokens[piece], self.layer.fuse(features[piece])))
                for line, (tokens, features) in zip(lines, unread, strict=True)
                if len(tokens) > first
            ]
            read = self._read([rows for _, rows in reading])
            for (line, _), states in zip(reading, read, strict=True):
                line.states = states[-1:]

    def _read(self, parts: Sequence[EagleRows]) -> Sequence[torch.Tensor]:
        """The states of several sequences, in one pass over their rows."""
        if not parts:
            return []
        self.forwards += 1
        sizes = [len(part.tokens) for part in parts]

        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            split = zip(*(of.split(sizes, dim=1) for of in (query, key, value)), strict=True)
            attended = [
                part.memory.attend(q, k, v, part.sees)
                for part, (q, k, v) in zip(parts, split, strict=True)
            ]
            return torch.cat(attended, dim=1)

        tokens = self._embed([token for part in parts for token in part.tokens])
        states = torch.cat([part.states for part in parts])
        turns = self.layer.shape.rotation(torch.cat([part.positions for part in parts]))
        made: torch.Tensor = self.layer(tokens, states, turns, attend)
        split: Sequence[torch.Tensor] = made.split(sizes)
        return split

    def _grow(self, lines: Sequence[EagleSequence]) -> None:
        if not lines:
            return
        sizes = [len(line.states) for line in lines]
        ready = self.layer.ready(torch.cat([line.states for line in lines]))
        logs = self._head(ready).float().log_softmax(dim=-1)
        best, at = logs.topk(min(self.options.width, logs.shape[1]), dim=-1)
        scores = best.double().cpu().numpy()
        tokens = self._head.ids[at].cpu().numpy()
        ends = np.cumsum(sizes)[:-1]
        parts = zip(lines, np.split(tokens, ends), np.split(scores, ends), strict=True)
        for line, children, logs_of in parts:
            line.growth.grow(children, logs_of)


class EagleDrafter(FeatureDrafter):
    """Implements `TargetObserver`: one sequence of `EagleMethod`."""

    def __init__(self, method: EagleMethod, taps: tuple[int, ...]) -> None:
        super().__init__(method, taps)
        self.memory = LayerCache()


class EagleMethod(BaseMethod):
    """Implements `SpeculativeMethod`: trees of an `EagleModel`."""

    def __init__(self, model: EagleModel) -> None:
        super().__init__("eagle", model.options.nodes)
        self._model = model

    @property
    def forwards(self) -> int:
        """Passes of the drafter's layer so far, each over several sequences."""
        return self._model.forwards

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> EagleDrafter:  # noqa: ARG002
        return EagleDrafter(self, self._model.taps)

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        drafts = [DraftProposal()] * len(asks)
        lines: dict[int, EagleSequence] = {}
        unread: list[tuple[list[int], torch.Tensor]] = []
        for at, (drafter, most) in enumerate(asks):
            assert isinstance(drafter, EagleDrafter)
            new = drafter.unread() if most > 0 else None
            if new is not None:
                growth = DynamicTree(self._model.options.width)
                lines[at] = EagleSequence(drafter.memory, growth, most)
                unread.append(new)
        for at, tree in zip(lines, self._model.draft(list(lines.values()), unread), strict=True):
            drafts[at] = DraftProposal(tree, source=self.name)
        return drafts


KIND = "eagle"
EAGLE_FORMS: Final[Mapping[int, type[EagleLayer | Eagle3Layer]]] = {1: EagleLayer, 2: Eagle3Layer}
FEW = EagleOptions(depth=4, width=3, nodes=8)
"""For CPUs, which read about ten tokens in the time of one."""


def _make(network: Network, options: Options) -> SpeculativeMethod:
    usual = FEW if network.embed([0]).device.type == "cpu" else EagleOptions()
    tree = switch(options, "tree", default=True)
    depth = whole(options, "depth", usual.depth, 1, 32)
    sizes = EagleOptions(
        depth=depth,
        width=whole(options, "width", usual.width, 1, 64) if tree else 1,
        nodes=whole(
            options, "num_speculative_tokens", usual.nodes if tree else depth, 1, MOST_NODES
        ),
    )
    given = text(options, "model")
    if given is None or not is_published(Path(given).expanduser()):
        return EagleMethod(loaded(find(KIND, network, given), network, sizes))
    parts = read_eagle3(Path(given).expanduser(), network)
    own = DraftTables(parts.head, parts.embed)
    return EagleMethod(EagleModel(parts.layer, parts.taps, parts.head.ids, network, sizes, own))


def loaded(trained: TrainedDrafter, network: Network, options: EagleOptions) -> EagleModel:
    """The trained layer of a drafter. Raises: `CapabilityError` for a broken one."""
    taps = trained.taps(network.layers)
    kind = EAGLE_FORMS[read_form(trained)]
    with torch.device("meta"):
        layer = kind(read_shape(trained, EagleShape, network.width))
    trained.fill(layer, network.embed([0]))
    tokens = trained.ids("tokens", network.vocabulary_size)
    return EagleModel(layer, taps, tokens, network, options)


PRESETS = (
    Preset(
        "eagle",
        "one more layer on the target's features drafts a tree (EAGLE-2's, with EAGLE-3's"
        " features)",
        _make,
        needs="a layer trained for the model",
        options=("num_speculative_tokens", "model", "tree", "depth", "width"),
        published=PublishedSpeed(
            5.71, "EAGLE-3, Spec-Bench, Vicuna-13B greedy on an A100, 59 nodes"
        ),
    ),
)
