"""A draft: a tree of tokens that may follow the last committed one, and auxiliary rows.

Arrays over a tree have a row for the root first, then one for each node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from weft.decoding.network.packing import HiddenStateWrite

ROOT: Final = -1
DrawKind = Literal["independent", "without_replacement"]


@dataclass(frozen=True, slots=True, eq=False)
class ChildDistribution:
    """How the children of a node were sampled, in order, from `distribution` [vocabulary].

    independent           each from the distribution itself (SpecInfer)
    without_replacement   each from what the earlier ones leave of it (Sequoia)
    """

    kind: DrawKind
    distribution: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DraftTree:
    """`tokens[i]` follows node `parents[i]` (`ROOT`: the last committed token), which comes first.

    `proposals` has the distribution of sampled children by their parent, in the order of sampling;
    other children were chosen by a rule (a look-up, the largest logits), and then siblings differ.
    Chains and empty drafts are trees.

    Raises: `ValueError` for an invalid tree.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    proposals: Mapping[int, ChildDistribution] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.parents):
            raise ValueError(f"{len(self.tokens)} tokens with {len(self.parents)} parents")
        edges: set[tuple[int, int]] = set()
        for node, (token, parent) in enumerate(zip(self.tokens, self.parents, strict=True)):
            if not ROOT <= parent < node:
                raise ValueError(f"node {node} comes before its parent {parent}")
            if token < 0:
                raise ValueError(f"node {node} is no token: {token}")
            proposal = self.proposals.get(parent)
            again = (parent, token) in edges
            if again and (proposal is None or proposal.kind == "without_replacement"):
                raise ValueError(f"node {node} repeats a sibling, token {token}")
            edges.add((parent, token))

    @classmethod
    def chain(
        cls, tokens: Sequence[int], distributions: Sequence[NDArray[np.float64]] | None = None
    ) -> DraftTree:
        """A chain of tokens, sampled from `distributions` if given."""
        parents = tuple(range(ROOT, len(tokens) - 1))
        if distributions is None:
            return cls(tuple(tokens), parents)
        pairs = zip(parents, distributions, strict=True)
        return cls(
            tuple(tokens),
            parents,
            {p: ChildDistribution("independent", distribution) for p, distribution in pairs},
        )

    def __len__(self) -> int:
        return len(self.tokens)

    def children(self, node: int) -> tuple[int, ...]:
        """The nodes that follow `node`, in their order."""
        return tuple(child for child, parent in enumerate(self.parents) if parent == node)

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the first after the root to `node`."""
        return tuple(self._upwards(node))[::-1]

    @property
    def depths(self) -> NDArray[np.int64]:
        """[1 + nodes]: positions after the root; 0 for the root."""
        depths = np.zeros(1 + len(self), np.int64)
        for node, parent in enumerate(self.parents):
            depths[node + 1] = depths[parent + 1] + 1
        return depths

    @property
    def ancestors(self) -> NDArray[np.bool_]:
        """[1 + nodes, 1 + nodes]: whether the row's node sees the column's: itself, ancestors."""
        sees = np.eye(1 + len(self), dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            sees[node + 1] |= sees[parent + 1]
        return sees

    def clipped(self, depth: int, nodes: int | None = None) -> DraftTree:
        """No deeper than `depth`, and of the rest the first `nodes`. The choice among siblings
        depends on their order only, so that acceptance stays exact.
        """
        depths = self.depths[1:]
        selected = [node for node in range(len(self)) if depths[node] <= depth][:nodes]
        place = {ROOT: ROOT} | {node: at for at, node in enumerate(selected)}
        return DraftTree(
            tuple(self.tokens[node] for node in selected),
            tuple(place[self.parents[node]] for node in selected),
            {
                place[parent]: distribution
                for parent, distribution in self.proposals.items()
                if parent in place
            },
        )

    def _upwards(self, node: int) -> Iterator[int]:
        while node != ROOT:
            yield node
            node = self.parents[node]


def _nothing() -> NDArray[np.bool_]:
    return np.zeros((0, 0), np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class AuxiliaryRows:
    """Rows that are read with a draft but are no candidates, as in one-pass methods.

    Prompt tokens (PPD, arXiv 2405.18628), look-ahead tokens (PaSS, 2311.13581), the window of
    Lookahead (2402.02057), injected states (hidden transfer, 2404.12022).

    Each row reads a token of `tokens` under a node of the draft, or `ROOT`.

    under    that node; the row sees it and its ancestors
    depths   positions after the root
    sees     [rows, rows]: which of these rows each sees, itself included
    writes   replacements of hidden states; row 0 is the root, then come the nodes and these rows

    Raises: `ValueError` for different sizes.
    """

    tokens: tuple[int, ...] = ()
    under: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    sees: NDArray[np.bool_] = field(default_factory=_nothing)
    writes: tuple[HiddenStateWrite, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.tokens)
        if {len(self.under), len(self.depths), *self.sees.shape} != {count}:
            raise ValueError(f"{count} rows of unlike sizes")

    def __len__(self) -> int:
        return len(self.tokens)

    def below(self, node: int) -> tuple[int, ...]:
        """The rows under `node`."""
        return tuple(row for row, above in enumerate(self.under) if above == node)

    def depths_with(self, tree: DraftTree) -> NDArray[np.int64]:
        """[1 + nodes + rows]: positions after the root."""
        return np.concatenate([tree.depths, np.array(self.depths, np.int64)])

    def sees_with(self, tree: DraftTree) -> NDArray[np.bool_]:
        """[1 + nodes + rows, 1 + nodes + rows]: which each sees. No node sees a row."""
        nodes = 1 + len(tree)
        sees = np.zeros((nodes + len(self),) * 2, np.bool_)
        sees[:nodes, :nodes] = tree.ancestors
        sees[nodes:, :nodes] = sees[[node - ROOT for node in self.under], :nodes]
        sees[nodes:, nodes:] = self.sees
        return sees


NO_ROWS = AuxiliaryRows()


@dataclass(frozen=True, slots=True)
class DraftProposal:
    """A draft: the target verifies `tree`, and only reads `aux`. `source`: its drafter."""

    tree: DraftTree = field(default_factory=DraftTree)
    aux: AuxiliaryRows = NO_ROWS
    source: str = ""

    def clipped(self, depth: int) -> DraftProposal:
        """No deeper than `depth`, without rows under removed nodes; unchanged where all fits.

        Rows with writes cannot be renumbered: such a draft is cut to its tree.
        """
        if int(self.tree.depths.max()) <= depth:
            return self
        tree = self.tree.clipped(depth)
        stays = self.aux if all(node == ROOT for node in self.aux.under) else NO_ROWS
        return DraftProposal(tree, NO_ROWS if stays.writes else stays, self.source)
