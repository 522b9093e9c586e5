"""Lexical Unit Decoding (arXiv 2405.15208): several confident tokens at once, by placeholders.

The published method accepts them unverified, which changes the text; the same rows also draft for
a lossless rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from weft.decoding.network.network import Network
from weft.decoding.network.packing import HiddenStateWrite
from weft.decoding.speculative.acceptance import AcceptAll, Acceptor, ExactMatch, LossyAcceptor
from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafter import (
    PerSequenceMethod,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.trained.rows import RowDrafter
from weft.decoding.speculative.presets import Options, Preset, share, text, whole
from weft.decoding.speculative.trained_drafter import TrainedDrafter, find


class LexicalPlaceholders(nn.Module):  # type: ignore[misc]
    """The embeddings of placeholders, and low-rank corrections of their states.

    The paper tunes the whole model; here only the placeholders' rows change: `count` embeddings,
    and a correction of `rank` before each of `layers`. Initially all embeddings are `like` [width],
    without corrections.
    """

    def __init__(self, count: int, layers: tuple[int, ...], rank: int, like: torch.Tensor) -> None:
        super().__init__()
        width = len(like)
        self.layers = layers
        self.rows = nn.Parameter(like.detach().clone().float().repeat(count, 1))
        down = torch.empty(len(layers), rank, width)
        nn.init.normal_(down, std=width**-0.5)
        self.down = nn.Parameter(down)
        self.up = nn.Parameter(torch.zeros(len(layers), width, rank))

    @property
    def count(self) -> int:
        """Number of placeholders in a chain."""
        return len(self.rows)

    def corrected(self, place: int, states: torch.Tensor) -> torch.Tensor:
        """The corrected input of layer `layers[place]` for states [..., width]."""
        size = states.float().square().mean(dim=-1, keepdim=True).sqrt() + 1e-6
        scaled = (states / size).to(self.down.dtype)
        return states + (scaled @ self.down[place].T @ self.up[place].T) * size


@dataclass(frozen=True, slots=True)
class LexicalUnitOptions:
    """A placeholder's likeliest token is drafted while its probability is at least `beta`.

    `anywhere`: for drafts that may be rejected anywhere, with placeholders below every node; else
    below the last one only.

    Raises: `ValueError` for no probability.
    """

    beta: float = 0.9
    anywhere: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.beta <= 1.0:
            raise ValueError(f"beta {self.beta} is no probability")


class LexicalUnitDrafter(RowDrafter):
    """Implements `TargetObserver`: the confident tokens of placeholders, as a chain."""

    def __init__(
        self, name: str, placeholders: LexicalPlaceholders, options: LexicalUnitOptions
    ) -> None:
        super().__init__(name)
        self._placeholders = placeholders
        self._options = options

    def draft(
        self, logits: NDArray[np.float32], forced: int, most: int
    ) -> tuple[DraftTree, Sequence[int]]:
        unit = confident_tokens(logits, self._options.beta)[forced:]
        tree = DraftTree.chain(unit[:most])
        every = self._placeholders.count if self._options.anywhere else 0
        return tree, [every] * len(tree) + [self._placeholders.count]

    def writes(self, rows: tuple[int, ...], counts: Sequence[int]) -> Sequence[HiddenStateWrite]:
        """Writes to all layers, of which the first is the embedding."""
        placeholders, index = self._placeholders, list(rows)
        chains = sum(map(bool, counts))

        def embedded(entering: torch.Tensor) -> torch.Tensor:
            return placeholders.rows.repeat(chains, 1).to(entering)

        def corrected(place: int) -> HiddenStateWrite:
            return HiddenStateWrite(
                placeholders.layers[place],
                rows,
                lambda entering: placeholders.corrected(place, entering[index]),
            )

        layers = map(corrected, range(len(placeholders.layers)))
        return [HiddenStateWrite(0, rows, embedded), *layers]


def confident_tokens(logits: NDArray[np.float32], beta: float) -> list[int]:
    """The likeliest tokens of logits [rows, vocabulary], up to the first below `beta`."""
    tokens = []
    for row in logits:
        scaled = np.exp(row.astype(np.float64) - float(row.max()))
        if 1.0 / scaled.sum() < beta:
            break
        tokens.append(int(row.argmax()))
    return tokens


KIND = "lexical_units"
OPTIONS = ("num_speculative_tokens", "model", "beta")
_MOST_ROWS = 16


def _units(
    name: str,
    usual: LexicalUnitOptions,
    acceptor: Acceptor | LossyAcceptor,
    network: Network,
    options: Options,
) -> SpeculativeMethod:
    settings = LexicalUnitOptions(share(options, "beta", usual.beta), usual.anywhere)
    placeholders = loaded(find(KIND, network, text(options, "model")), network)
    most = whole(options, "num_speculative_tokens", placeholders.count, 1, placeholders.count)
    return PerSequenceMethod(
        name, lambda: LexicalUnitDrafter(name, placeholders, settings), most, acceptor
    )


def loaded(trained: TrainedDrafter, network: Network) -> LexicalPlaceholders:
    """The placeholders of a drafter. Raises: `CapabilityError` for broken ones."""
    count = trained.whole("placeholders", 1, _MOST_ROWS)
    rank = trained.whole("rank", 1, network.width)
    first = trained.whole("first_layer", 0, network.layers - 1)
    like = network.embed([0])
    layers = tuple(range(first, network.layers))
    return trained.fill(LexicalPlaceholders(count, layers, rank, like[0]), like)


PRESETS = (
    Preset(
        "lexical_units",
        "tokens that placeholders are sure of are kept without a look at them: the text changes",
        partial(_units, "lexical_units", LexicalUnitOptions(0.9), AcceptAll()),
        lossless=False,
        needs="placeholders trained for the model",
        options=OPTIONS,
    ),
    Preset(
        "lexical_units_verified",
        "tokens that placeholders guess, as a chain that the model verifies: the text stays",
        partial(
            _units,
            "lexical_units_verified",
            LexicalUnitOptions(0.1, anywhere=True),
            ExactMatch(),
        ),
        needs="placeholders trained for the model",
        options=OPTIONS,
    ),
)
