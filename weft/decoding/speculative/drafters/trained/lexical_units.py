"""Lexical Unit Decoding (arXiv 2405.15208): several sure tokens at once, by placeholders.

The published method keeps them unverified and changes the text; the same rows also draft for a
lossless rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from weft.decoding.network.network import Network
from weft.decoding.network.packing import HiddenStateWrite
from weft.decoding.speculative.acceptance import AcceptAll, Acceptor, LossyAcceptor
from weft.decoding.speculative.draft import ROOT, DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    FixedDraftLength,
    PerSequenceMethod,
    SpeculativeMethod,
    TargetOutputs,
)
from weft.decoding.speculative.drafters.trained.rows import GuessPosition, chains_below
from weft.decoding.speculative.presets import Options, Preset, share, text, whole
from weft.decoding.speculative.trained_drafter import TrainedDrafter, find


class LexicalPlaceholders(nn.Module):  # type: ignore[misc]
    """`count` embeddings of the given width, and before each of `layers` a correction of `rank`.

    It begins with the embedding of a token, `like` [width], at all of them, and no correction.
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
        """How many placeholders stand in a row."""
        return len(self.rows)

    def corrected(self, place: int, states: torch.Tensor) -> torch.Tensor:
        """What shall enter layer `layers[place]` of states [..., width] that would enter it."""
        size = states.float().square().mean(dim=-1, keepdim=True).sqrt() + 1e-6
        scaled = (states / size).to(self.down.dtype)
        return states + (scaled @ self.down[place].T @ self.up[place].T) * size


@dataclass(frozen=True, slots=True)
class LexicalUnitOptions:
    """A placeholder's likeliest token is drafted while it has at least probability `beta`.

    `anywhere`: the draft may be rejected somewhere, so that placeholders are needed below every
    node; else they stand below the last one only.

    Raises: `ValueError` for what is no probability.
    """

    beta: float = 0.9
    anywhere: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.beta <= 1.0:
            raise ValueError(f"beta {self.beta} is no probability")


class LexicalUnits:
    """Implements `Watching`. Placeholders are read as the token `pad`, which is written over."""

    taps: tuple[int, ...] = ()

    def __init__(
        self, name: str, placeholders: LexicalPlaceholders, pad: int, options: LexicalUnitOptions
    ) -> None:
        self.name = name
        self._placeholders = placeholders
        self._pad = pad
        self._options = options
        self._unit: list[int] = []
        self._place = GuessPosition()

    def extend(self, tokens: Sequence[int]) -> None:
        self._place.extend(tokens)

    def see(self, seen: TargetOutputs) -> None:
        self._place.see(seen)
        self._unit = confident_tokens(seen.aux[list(seen.under)], self._options.beta)

    def propose(self, most: int) -> DraftProposal:
        if most < 1:
            return DraftProposal()
        unit, self._unit = self._unit[self._place.forced :], []
        tree = DraftTree.chain(unit[:most])
        nodes = range(ROOT, len(tree)) if self._options.anywhere else [len(tree) - 1]
        count = self._placeholders.count
        writes = self._writes(1 + len(tree), len(nodes))
        return DraftProposal(tree, chains_below(tree, nodes, count, self._pad, writes), self.name)

    def _writes(self, first: int, chains: int) -> list[HiddenStateWrite]:
        """For all layers, the first of which is the embedding."""
        placeholders = self._placeholders
        rows = tuple(range(first, first + chains * placeholders.count))
        index = list(rows)

        def embedded(entering: torch.Tensor) -> torch.Tensor:
            return placeholders.rows.repeat(chains, 1).to(entering)

        def corrected(place: int) -> HiddenStateWrite:
            return HiddenStateWrite(
                placeholders.layers[place],
                rows,
                lambda entering: placeholders.corrected(place, entering[index]),
            )

        return [
            HiddenStateWrite(0, rows, embedded),
            *map(corrected, range(len(placeholders.layers))),
        ]


def confident_tokens(logits: NDArray[np.float32], beta: float) -> list[int]:
    """The likeliest tokens of laws [rows, vocabulary], up to the first that is not sure."""
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


def units(
    name: str,
    network: Network,
    options: Options,
    usual: LexicalUnitOptions,
    acceptor: Acceptor | LossyAcceptor,
) -> SpeculativeMethod:
    """The method of that name. Raises: `SpecError` for options, `CapabilityError` for weights."""
    settings = LexicalUnitOptions(share(options, "beta", usual.beta), usual.anywhere)
    placeholders = loaded(find(KIND, network, text(options, "model")), network)
    most = whole(options, "num_speculative_tokens", placeholders.count, 1, placeholders.count)
    pad = 0  # its embedding is written over
    return PerSequenceMethod(
        name,
        lambda: LexicalUnits(name, placeholders, pad, settings),
        lambda: FixedDraftLength(most),
        acceptor,
    )


def loaded(artefact: TrainedDrafter, network: Network) -> LexicalPlaceholders:
    """The placeholders of `artefact`. Raises: `CapabilityError` for ones that are broken."""
    count = artefact.whole("placeholders", 1, _MOST_ROWS)
    rank = artefact.whole("rank", 1, network.width)
    first = artefact.whole("first_layer", 0, network.layers - 1)
    like = network.embed([0])
    layers = tuple(range(first, network.layers))
    placeholders = LexicalPlaceholders(count, layers, rank, like[0])
    weights = {
        name: artefact.tensor(name, tuple(value.shape))
        for name, value in placeholders.state_dict().items()
    }
    placeholders.load_state_dict(weights)
    placeholders.to(like.device, like.dtype).requires_grad_(requires_grad=False)
    return placeholders


def _make(network: Network, options: Options) -> SpeculativeMethod:
    return units("lexical_units", network, options, LexicalUnitOptions(0.9), AcceptAll())


PRESET = Preset(
    "lexical_units",
    "tokens that placeholders are sure of are kept without a look at them: the text changes",
    _make,
    lossless=False,
    needs="placeholders trained for the model",
    options=OPTIONS,
)
