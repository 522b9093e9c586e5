"""The port to a diffusion model: queries in, aligned logits out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weft.decoding.diffusion.query import Query

Attention = Literal["full", "block_causal", "causal_encoder"]


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """Properties of a model that policies may use.

    mask_id    what an undecided slot holds; None: noise, any token
    end_ids    tokens that end a text
    banned     tokens that are never written; `mask_id` is one
    attention  full: all see all; block_causal: a slot sees its own block and those before, blocks
               of `block` slots counted from slot 0; causal_encoder: what is decided is read
               causally, the window sees all
    shifted    the raw logits of a slot predict the next one; adapters align them
    digest     of its embeddings, where known: weights trained for another model are refused
    folder     of its tokenizer, where known
    device     it computes on; models that judge its texts compute there, too
    """

    vocabulary: int
    mask_id: int | None
    end_ids: frozenset[int]
    banned: frozenset[int] = frozenset()
    attention: Attention = "full"
    block: int = 0
    shifted: bool = False
    digest: str = ""
    folder: Path | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        if (self.attention == "block_causal") != (self.block > 0):
            raise ValueError(f"{self.attention} attention with blocks of {self.block}")
        if self.mask_id is not None and self.mask_id not in self.banned:
            object.__setattr__(self, "banned", self.banned | {self.mask_id})


class ModelAdapter(Protocol):
    """A model that fills canvases, with a cache of their rows."""

    @property
    def traits(self) -> ModelTraits:
        """The properties of the model."""

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        """One pass over all queries: [wanted + shadows, vocabulary] of each, in that order.

        Row i predicts slot `wanted[i]`, whatever the model's shift. What the traits ban is -inf.
        Answers do not depend on the other queries of the pass.
        """

    def forget(self, row: int) -> None:
        """Drop what is cached of `row`."""
