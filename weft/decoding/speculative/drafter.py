"""The port of drafters: who guesses what comes next. Guesses decide the speed, never the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.tree import DraftTree
from weft.decoding.speculative.walk import Walk

if TYPE_CHECKING:
    import torch


class Drafter(Protocol):
    """Guesses for one sequence. It is told every token of it, in order, and nothing else."""

    @property
    def name(self) -> str:
        """What reports call it."""

    def extend(self, tokens: Sequence[int]) -> None:
        """The sequence goes on with `tokens`: first the prompt, then what is committed."""

    def propose(self, most: int) -> Draft | DraftTree:
        """A draft of what follows the last token, of at most `most` nodes; perhaps none."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What one pass of the target showed of a sequence.

    tokens   those it read that stay, in order: a piece of the prompt, or the last token and the
             accepted path
    hidden   by layer: [tokens, width], what entered it for these tokens
    logits   [1 + nodes, vocabulary] of the root and the draft; a prompt's last piece has one row,
             the others none
    aux      [rows, vocabulary] of the rows beside the draft; `under`: those under the last accepted
             node
    walk     what came of the draft; None for the prompt
    """

    tokens: tuple[int, ...]
    hidden: Mapping[int, torch.Tensor] = field(default_factory=dict)
    logits: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    aux: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    under: tuple[int, ...] = ()
    walk: Walk | None = None


@runtime_checkable
class Watching(Drafter, Protocol):
    """A drafter that also looks at the target's passes.

    What was taken over from another sequence's cache is never seen: it starts later then.
    """

    @property
    def taps(self) -> tuple[int, ...]:
        """The layers whose entering states it wants; the number of layers: what leaves the last."""

    def see(self, seen: Seen) -> None:
        """A pass has been made. Comes before `extend` with the tokens that came of it."""
