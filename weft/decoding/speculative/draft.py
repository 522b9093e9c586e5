"""A draft: a tree of tokens that may follow the last committed one, and rows read beside it.

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
    """How the children of a node were drawn: from `distribution` [vocabulary], in their order.

    independent           each from the distribution itself (SpecInfer)
    without_replacement   each from what the earlier ones leave of it (Sequoia)
    """

    kind: DrawKind
    distribution: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DraftTree:
    """`tokens[i]` follows node `parents[i]` (`ROOT`: the last committed token), which is before it.

    Children of one node stand in the order in which they were drawn. `proposals` has the
    distribution of those that were drawn at random, by their parent; the others were chosen by a
    rule that draws nothing (a look-up, the largest logits), and then siblings differ. A chain is a
    tree, and so is a draft of nothing.

    Raises: `ValueError` for what is no such tree.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    proposals: Mapping[int, ChildDistribution] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.parents):
            raise ValueError(f"{len(self.tokens)} tokens with {len(self.parents)} parents")
        seen: set[tuple[int, int]] = set()
        for node, (token, parent) in enumerate(zip(self.tokens, self.parents, strict=True)):
            if not ROOT <= parent < node:
                raise ValueError(f"node {node} comes before its parent {parent}")
            if token < 0:
                raise ValueError(f"node {node} is no token: {token}")
            proposal = self.proposals.get(parent)
            again = (parent, token) in seen
            if again and (proposal is None or proposal.kind == "without_replacement"):
                raise ValueError(f"node {node} repeats a sibling, token {token}")
            seen.add((parent, token))

    @classmethod
    def chain(
        cls, tokens: Sequence[int], distributions: Sequence[NDArray[np.float64]] | None = None
    ) -> DraftTree:
        """Tokens that follow one another, drawn from `distributions` where those are given."""
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
        """[1 + nodes]: 0 for the root. A token stands so many positions after the root."""
        depths = np.zeros(1 + len(self), np.int64)
        for node, parent in enumerate(self.parents):
            depths[node + 1] = depths[parent + 1] + 1
        return depths

    @property
    def ancestors(self) -> NDArray[np.bool_]:
        """[1 + nodes, 1 + nodes]: whether the row's node sees the column's: itself, those above."""
        seen = np.eye(1 + len(self), dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            seen[node + 1] |= seen[parent + 1]
        return seen

    def clipped(self, depth: int, nodes: int | None = None) -> DraftTree:
        """No deeper than `depth`, and of what is left the first `nodes`.

        Which of several children stay depends on their order only, so that the rules stay exact.
        """
        depths = self.depths[1:]
        kept = [node for node in range(len(self)) if depths[node] <= depth][:nodes]
        place = {ROOT: ROOT} | {node: at for at, node in enumerate(kept)}
        return DraftTree(
            tuple(self.tokens[node] for node in kept),
            tuple(place[self.parents[node]] for node in kept),
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
    """Rows that are read along with a draft and are no candidates: one-pass methods look ahead by
    them.

    Prompt tokens (PPD, arXiv 2405.18628), look-ahead tokens (PaSS, 2311.13581), the window of
    Lookahead (2402.02057), injected states (hidden transfer, 2404.12022).

    Each row reads a token of `tokens`, and hangs under a node of the draft, or `ROOT`.

    under    that node; the row sees it and all above it
    depths   how many positions after the root the row stands
    sees     [rows, rows]: which of these rows each sees, itself included
    writes   what is put in the place of hidden states; there row 0 is the root, then come the
             nodes, then these rows

    Raises: `ValueError` where sizes differ.
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
        """The rows that hang under `node`."""
        return tuple(row for row, above in enumerate(self.under) if above == node)

    def depths_with(self, tree: DraftTree) -> NDArray[np.int64]:
        """[1 + nodes + rows]: how many positions after the root each stands."""
        return np.concatenate([tree.depths, np.array(self.depths, np.int64)])

    def sees_with(self, tree: DraftTree) -> NDArray[np.bool_]:
        """[1 + nodes + rows, 1 + nodes + rows]: which each sees. No node sees a row."""
        nodes = 1 + len(tree)
        seen = np.zeros((nodes + len(self),) * 2, np.bool_)
        seen[:nodes, :nodes] = tree.ancestors
        seen[nodes:, :nodes] = seen[[node - ROOT for node in self.under], :nodes]
        seen[nodes:, nodes:] = self.sees
        return seen


NO_ROWS = AuxiliaryRows()


@dataclass(frozen=True, slots=True)
class DraftProposal:
    """What a drafter asks the target to read: `tree` may be walked, `aux` is only looked at.
    `source`: who drafted, for reports.
    """

    tree: DraftTree = field(default_factory=DraftTree)
    aux: AuxiliaryRows = NO_ROWS
    source: str = ""

    def clipped(self, depth: int) -> DraftProposal:
        """No deeper than `depth`; rows under what is cut off go too. Unchanged where all fits.

        Rows that are written to cannot be numbered anew: such a draft is cut to its tree.
        """
        if int(self.tree.depths.max()) <= depth:
            return self
        tree = self.tree.clipped(depth)
        stays = self.aux if all(node == ROOT for node in self.aux.under) else NO_ROWS
        return DraftProposal(tree, NO_ROWS if stays.writes else stays, self.source)
