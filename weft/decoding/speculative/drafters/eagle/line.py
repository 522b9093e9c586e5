"""One sequence while a step is drafted: what the layer reads for it, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from weft.decoding.speculative.drafters.eagle.growth import Growth
from weft.decoding.speculative.drafters.eagle.memory import Memory
from weft.decoding.speculative.tree import ROOT


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What the layer reads of one sequence: `states` [rows, width] with the `tokens` after them.
    All tensors are on the device of the states.

    positions   [rows]
    sees        bool [rows, rows of the memory before + rows]
    """

    memory: Memory
    tokens: Sequence[int]
    states: torch.Tensor
    positions: torch.Tensor
    sees: torch.Tensor


class Line:
    """A tree that grows after what `memory` holds. Committed rows come first, once."""

    def __init__(self, memory: Memory, growth: Growth, most: int) -> None:
        self.growth = growth
        self.most = most
        self.states = torch.empty(0)
        """[frontier, width]: what the layer made of the nodes that get children next."""
        self._memory = memory
        self._base = 0
        self._drafted = 0
        self._seen: dict[int, tuple[int, ...]] = {ROOT: ()}
        """By node that was read: the drafted rows on the way to it, its own last."""
        self._row = {ROOT: 0}
        """By node of the last level that was read: its row there."""

    def committed(self, tokens: Sequence[int], states: torch.Tensor) -> Rows:
        """Rows that stay: states of committed tokens, and the tokens after them."""
        before = self._memory.length
        self._base = before + len(tokens)
        positions = torch.arange(before, self._base, device=states.device)
        sees = torch.arange(self._base, device=states.device) <= positions[:, None]
        return Rows(self._memory, tokens, states, positions, sees)

    def level(self) -> Rows:
        """The frontier's nodes, each with its parent's state."""
        nodes = self.growth.frontier
        parents = [self.growth.parent(node) for node in nodes]
        sees = torch.zeros(len(nodes), self._base + self._drafted + len(nodes), dtype=torch.bool)
        sees[:, : self._base] = True
        for row, (node, parent) in enumerate(zip(nodes, parents, strict=True)):
            self._seen[node] = (*self._seen[parent], self._drafted + row)
            sees[row, [self._base + column for column in self._seen[node]]] = True
        # the first drafted row follows the last committed one
        place = self._base + len(self._seen[nodes[0]]) - 1
        states = self.states[[self._row[parent] for parent in parents]]
        self._drafted += len(nodes)
        self._row = {node: row for row, node in enumerate(nodes)}
        tokens = [self.growth.token(node) for node in nodes]
        positions = torch.full((len(nodes),), place, device=states.device)
        return Rows(self._memory, tokens, states, positions, sees.to(states.device))

    def forget(self) -> None:
        """Only committed rows stay in the memory."""
        self._memory.crop(self._base)
