"""The port to an answer of a given form while it is filled on a canvas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.structure.slot import OPEN

__all__ = ["OPEN", "Kind", "Structure"]

Kind = Literal["skeleton", "left_to_right"]


class Structure(Protocol):
    """One answer; slots are counted from its first. Slots move when it is written to.

    Nothing that would not fit is ever written.
    """

    @property
    def kind(self) -> Kind:
        """How it is filled."""

    @property
    def reason(self) -> str:
        """Why it is no skeleton; empty where it is one."""

    @property
    def narrowed(self) -> tuple[str, ...]:
        """What would fit but is never written."""

    @property
    def tokens(self) -> list[int]:
        """What stands in each slot; `OPEN` where nothing is decided."""

    @property
    def literal(self) -> list[bool]:
        """The slots that were never open."""

    @property
    def over(self) -> bool:
        """Nothing more can be written."""

    @property
    def complete(self) -> bool:
        """What is written has the form asked for."""

    def restrict(self, slot: int, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """`logits` [vocabulary] of an open slot, -inf where a token cannot stand."""

    def admitted(self, slots: Sequence[int], tokens: Sequence[int]) -> list[bool]:
        """Which of these can be decided together, the first ones rather than the later ones."""

    def write(self, slots: Sequence[int], tokens: Sequence[int]) -> None:
        """Decide slots in the order of their admission, and all that follows from that."""
