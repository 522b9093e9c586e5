"""A tree in one pass is its branches one after another; what stays of it is an ordinary prefix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serving.local.playback import EXACT
from weft.core.errors import CapabilityError
from weft.core.ports.model import Placed
from weft.decoding.network.network import Network
from weft.decoding.network.packing import HiddenStateWrite, Span
from weft.decoding.network.visibility import Placement, TreeMask
from weft.decoding.speculative.draft import ROOT, DraftTree

PROMPT = [5, 9, 3, 7]


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    parents: list[int] = []
    tokens: list[int] = []
    for node in range(draw(st.integers(1, 9))):
        parents.append(draw(st.integers(ROOT, node - 1)))
        tokens.append(10 + node)
    return DraftTree(tuple(tokens), tuple(parents))


def branching(slot: int, tree: DraftTree, first: int, **more: object) -> Span:
    tokens = (PROMPT[-1], *tree.tokens)
    columns = range(first, first + len(tokens))
    branches = TreeMask(first, tree.depths, tree.ancestors)
    return Span(slot, columns, tokens, len(tokens), branches, **more)  # type: ignore[arg-type]


@settings(max_examples=40)
@given(trees(), st.data())
def test_a_tree_reads_like_its_branches(
    network: Network, tree: DraftTree, data: st.DataObject
) -> None:
    network.reset()
    before = len(PROMPT) - 1
    fill = [Span(slot, range(before), PROMPT[:-1], 0) for slot in (0, 1, 2)]
    network.forward(fill)
    # another row decodes plainly in the same pass
    read = network.forward([branching(1, tree, before), Span(2, (before,), PROMPT[-1:], 1)])
    for node in range(len(tree)):
        path = [tree.tokens[above] for above in tree.path(node)]
        line = [PROMPT[-1], *path]
        alone = network.forward([Span(0, range(before, before + len(line)), line, len(line))])
        np.testing.assert_allclose(read[1].logits[node + 1], alone[0].logits[-1], rtol=0, atol=2e-5)
    path_nodes = tree.path(data.draw(st.integers(ROOT, len(tree) - 1)))
    network.keep(1, before + 1, path_nodes)
    line = [PROMPT[-1], *(tree.tokens[node] for node in path_nodes), 30]
    network.forward([Span(0, range(before, before + len(line)), line, 1)])
    network.forward([Span(1, (before + len(line) - 1,), line[-1:], 1)])
    for column in range(before + len(line)):
        kept, fresh = network.column(1, column), network.column(0, column)
        torch.testing.assert_close(kept, fresh, rtol=0, atol=2e-5)


def test_a_tree_hangs_under_a_placed_sequence(network: Network) -> None:
    network.reset()
    placement = Placement([Placed(2, 0), Placed(2, 0)])  # side by side, then all is seen
    tokens = [*PROMPT, 8]
    tree = DraftTree((11, 12), (ROOT, ROOT))
    for slot in (0, 1):
        network.forward([Span(slot, range(4), PROMPT, 0, placement)])
    branches = TreeMask(4, tree.depths, tree.ancestors, placement)
    read = network.forward([Span(1, range(4, 7), (8, 11, 12), 3, branches)])[1]
    for node, token in enumerate(tree.tokens):
        alone = network.forward([Span(0, (4, 5), (tokens[-1], token), 2, placement)])[0]
        np.testing.assert_allclose(read.logits[0], alone.logits[0], rtol=0, atol=2e-5)
        np.testing.assert_allclose(read.logits[1 + node], alone.logits[1], rtol=0, atol=2e-5)


def test_layers_tell_what_enters_them(network: Network) -> None:
    network.reset()
    taps = (0, 1, network.layers)
    read = network.forward(
        [Span(0, range(3), PROMPT[:3], 3, taps=taps), Span(1, range(2), PROMPT[:2], 1, taps=(1,))]
    )
    assert {layer: tuple(h.shape) for layer, h in read[0].hidden.items()} == dict.fromkeys(
        taps, (3, network.width)
    )
    torch.testing.assert_close(read[0].hidden[0], network.embed(PROMPT[:3]))
    logits = network.head(read[0].hidden[network.layers])
    np.testing.assert_allclose(logits.float().numpy(), read[0].logits, rtol=0, atol=2e-5)
    torch.testing.assert_close(read[1].hidden[1], read[0].hidden[1][:2], rtol=0, atol=2e-5)


@pytest.mark.parametrize("layer", [0, 1])
def test_a_written_state_is_read_as_if_it_were_computed(network: Network, layer: int) -> None:
    """Writing what the right token has makes a wrong one read like it, from that layer on."""
    network.reset()
    right = network.forward([Span(0, range(3), PROMPT[:3], 1, taps=(layer,))])[0]
    wrong = [*PROMPT[:2], 29]
    made: list[torch.Tensor] = []

    def make(entering: torch.Tensor) -> torch.Tensor:
        made.append(entering)
        return right.hidden[layer][2:]

    write = HiddenStateWrite(layer, (2,), make)
    plain = network.forward([Span(1, range(3), wrong, 1)])[1]
    read = network.forward([Span(1, range(3), wrong, 1, writes=(write,))])[1]
    assert len(made) == 1
    assert made[0].shape == (3, network.width)
    assert not np.allclose(plain.logits, right.logits, atol=1e-3)
    if layer == 0:
        np.testing.assert_allclose(read.logits, right.logits, rtol=0, atol=2e-5)
    else:  # its keys of the layers before are those of the wrong token, which only it sees
        assert np.abs(read.logits - right.logits).max() < np.abs(plain.logits - right.logits).max()


def test_the_first_layers_are_a_model_of_their_own(network: Network) -> None:
    network.reset()
    taps = (0, 1, 2)
    whole = network.forward([Span(0, range(4), PROMPT, 1, taps=taps)])[0]
    short = network.share(layers=2)
    assert short.layers == 2
    read = short.forward([Span(0, range(4), PROMPT, 4, taps=(1, 2))])[0]
    torch.testing.assert_close(read.hidden[1], whole.hidden[1])
    logits = short.head(read.hidden[2]).float().numpy()
    np.testing.assert_allclose(logits, read.logits, rtol=0, atol=2e-5)
    again = network.share(layers=network.layers).forward([Span(0, range(4), PROMPT, 1)])[0]
    np.testing.assert_allclose(again.logits, whole.logits, rtol=0, atol=2e-5)
    with pytest.raises(ValueError, match="layers 0 to 9 of 3"):
        network.share(layers=9)


def test_layers_out_of_sight_are_refused(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_decoder", None)
    with pytest.raises(CapabilityError, match="cannot be found"):
        network.forward([Span(0, range(2), PROMPT[:2], 1, taps=(0,))])
    with pytest.raises(CapabilityError, match="cannot be found"):
        network.share(1)
