"""A draft: tokens that may follow the last committed one, as a tree. Knows no model and no law.

Arrays over a tree have a row for the root first, then one for each node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

ROOT: Final = -1
Kind = Literal["independent", "without_replacement"]


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """How the children of a node were drawn: from `law` [vocabulary], in their order.

    independent           each from the law itself (SpecInfer)
    without_replacement   each from what the earlier ones leave of it (Sequoia)
    """

    kind: Kind
    law: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DraftTree:
    """`tokens[i]` follows node `parents[i]` (`ROOT`: the last committed token), which is before it.

    Children of one node stand in the order in which they were drawn. `proposals` has the law of
    those that were drawn at random, by their parent; the others were chosen by a rule that draws
    nothing (a look-up, the largest logits), and then siblings differ. A chain is a tree, and so is
    a draft of nothing.

    Raises: `ValueError` for what is no such tree.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    proposals: Mapping[int, Proposal] = field(default_factory=dict)

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
        cls, tokens: Sequence[int], laws: Sequence[NDArray[np.float64]] | None = None
    ) -> DraftTree:
        """Tokens that follow one another, drawn from `laws` where those are given."""
        parents = tuple(range(ROOT, len(tokens) - 1))
        if laws is None:
            return cls(tuple(tokens), parents)
        pairs = zip(parents, laws, strict=True)
        return cls(tuple(tokens), parents, {p: Proposal("independent", law) for p, law in pairs})

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
            {place[parent]: law for parent, law in self.proposals.items() if parent in place},
        )

    def _upwards(self, node: int) -> Iterator[int]:
        while node != ROOT:
            yield node
            node = self.parents[node]
