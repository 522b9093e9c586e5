"""Look-ahead rows: a chain below every node after which the text may continue.

Shared by PPD (arXiv 2405.18628), PaSS (2311.13581), hidden transfer (2404.12022) and Lexical Unit
Decoding (2405.15208), which differ in the rows' inputs and in the trees from their logits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.network.packing import HiddenStateWrite
from weft.decoding.speculative.draft import ROOT, AuxiliaryRows, DraftProposal, DraftTree
from weft.decoding.speculative.drafter import TargetOutputs


def rows_below(
    tree: DraftTree, counts: Sequence[int], token: int, writes: Sequence[HiddenStateWrite] = ()
) -> AuxiliaryRows:
    """`counts` [1 + nodes] rows below the root and each node, each of which sees those before it.

    They have the positions after the node, and read `token`.
    """
    under = [place + ROOT for place, count in enumerate(counts) for _ in range(count)]
    steps = [1 + row for count in counts for row in range(count)]
    depths = tree.depths
    together = np.array(under)[:, None] == np.array(under)[None]
    return AuxiliaryRows(
        tokens=(token,) * len(under),
        under=tuple(under),
        depths=tuple(int(depths[n - ROOT]) + step for n, step in zip(under, steps, strict=True)),
        sees=np.tril(together),
        writes=tuple(writes),
    )


class GuessPosition:
    """The distance of the sequence from the target's last observed pass.

    It receives every pass and every token, as a drafter does; the first tokens are the prompt.

    Guesses at the last read token begin after the target's own next token. Tokens forced after that
    one (by a grammar) are those of the first guesses.
    """

    def __init__(self) -> None:
        self._behind = 1
        self._prompted = False

    @property
    def forced(self) -> int:
        """The number of first guesses whose tokens are known by now."""
        return max(self._behind - 1, 0)

    def see(self, outputs: TargetOutputs) -> None:
        """Note a pass. A prompt's last piece may omit its last token, or include its logits."""
        if outputs.walk is not None:
            self._behind = -len(outputs.walk.path)
        else:
            self._behind = 0 if len(outputs.logits) else 1

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens to the sequence."""
        if self._prompted:
            self._behind += len(tokens)
        self._prompted = True


class RowDrafter(ABC):
    """Implements `TargetObserver` with trained rows that the target reads below a draft.

    The logits of the rows below the last accepted node give the next draft, without another pass or
    model.
    """

    taps: tuple[int, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.position = GuessPosition()
        self.logits = np.zeros((0, 0), np.float32)
        """[rows, vocabulary] of the rows below the last accepted node; empty after use."""
        self.tokens = 0
        self._last: int | None = None

    def see(self, outputs: TargetOutputs) -> None:
        self.position.see(outputs)
        self.logits = outputs.aux[list(outputs.under)]

    def extend(self, tokens: Sequence[int]) -> None:
        self.position.extend(tokens)
        self.tokens += len(tokens)
        self._last = tokens[-1] if tokens else self._last

    def propose(self, most: int) -> DraftProposal:
        if most < 1 or self._last is None:
            return DraftProposal(source=self.name)
        logits, self.logits = self.logits, self.logits[:0]
        tree, counts = self.draft(logits, self.position.forced, most)
        rows = tuple(range(1 + len(tree), 1 + len(tree) + sum(counts)))
        writes = self.writes(rows, counts) if rows else []
        return DraftProposal(tree, rows_below(tree, counts, self._last, writes), self.name)

    @abstractmethod
    def draft(
        self, logits: NDArray[np.float32], forced: int, most: int
    ) -> tuple[DraftTree, Sequence[int]]:
        """At most `most` nodes from `logits`, whose first `forced` rows guessed known tokens; and
        the number of rows below the root and each node.
        """

    @abstractmethod
    def writes(self, rows: tuple[int, ...], counts: Sequence[int]) -> Sequence[HiddenStateWrite]:
        """The inputs of the target for `rows`, laid out by `counts`."""


class EmbeddingRowDrafter(RowDrafter):
    """A `RowDrafter` whose rows are learnt input embeddings [distances, width]."""

    def __init__(self, name: str, embeddings: torch.Tensor) -> None:
        super().__init__(name)
        self.embeddings = embeddings

    def writes(self, rows: tuple[int, ...], counts: Sequence[int]) -> Sequence[HiddenStateWrite]:
        distances = [row for count in counts for row in range(count)]
        return [HiddenStateWrite(0, rows, lambda _: self.embeddings[distances])]
