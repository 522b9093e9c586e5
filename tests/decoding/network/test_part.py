"""Some layers of a network as one of their own: one after the other they are the whole."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from tests.serving.local.playback import EXACT
from weft.decoding.network.network import Network
from weft.decoding.network.packing import HiddenStateWrite, Span

TOKENS = (5, 9, 3, 7, 11)


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


def _given(states: torch.Tensor, _computed: torch.Tensor) -> torch.Tensor:
    return states


def passed(
    parts: list[Network], cuts: list[int], columns: range, tokens: tuple[int, ...]
) -> object:
    """What comes out at the end of all parts: logits of every token."""
    entering: torch.Tensor | None = None
    for part, (first, last) in zip(parts, pairwise(cuts), strict=True):
        rows = tuple(range(len(tokens)))
        writes = (
            () if entering is None else (HiddenStateWrite(first, rows, partial(_given, entering)),)
        )
        span = Span(0, columns, tokens, len(tokens), writes=writes, taps=(-last,))
        reading = part.forward([span])[0]
        entering = reading.hidden[-last]
    return reading.logits


@pytest.mark.parametrize("cuts", [[0, 3], [0, 1, 3], [0, 2, 3], [0, 1, 2, 3]])
def test_parts_in_a_row_are_the_whole(network: Network, cuts: list[int]) -> None:
    network.reset()
    parts = [network.part(first, last) for first, last in pairwise(cuts)]
    for first in (0, 3):
        columns, tokens = range(first, first + len(TOKENS)), tuple(t + first for t in TOKENS)
        whole = network.forward([Span(0, columns, tokens, len(tokens))])[0].logits
        assert (passed(parts, cuts, columns, tokens) == whole).all(), "to the last bit"


@pytest.mark.parametrize(("first", "last"), [(0, 0), (-1, 2), (1, 4), (2, 1)])
def test_no_such_layers(network: Network, first: int, last: int) -> None:
    with pytest.raises(ValueError, match="of 3"):
        network.part(first, last)
