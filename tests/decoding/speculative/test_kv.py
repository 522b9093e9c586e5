"""After every commit the cache holds what a fresh reading of the text would: no more, no less."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from tests.decoding.speculative.random_trees import walked
from tests.serving.local.playback import EXACT
from weft.decoding.network import attention
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.acceptance import AcceptedPath
from weft.decoding.speculative.draft import ROOT, AuxiliaryRows, DraftProposal, DraftTree
from weft.decoding.speculative.target import NetworkTarget, draft_span, target_outputs

WORDS = 60
PROMPT = (5, 9, 3, 7, 9, 3)
TOLERANCE = 1e-12  # of keys and values of size 1, in float64
SMOLLM2_TOLERANCE = 2e-4  # of keys up to about 20, in float32
FRESH = 7
"""A slot that nothing else uses."""


def made(folder: Path, kv_heads: int) -> Network:
    """Six heads on `kv_heads`, random weights, float64."""
    attention.register()
    torch.manual_seed(kv_heads)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=kv_heads,
        max_position_embeddings=512,
        initializer_range=0.3,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation=attention.NAME
    )
    return Network(model.eval(), EXACT)


@pytest.fixture(scope="module", params=[6, 2, 1], ids=["each", "grouped", "one"])
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Network:
    return made(tmp_path_factory.mktemp("heads"), request.param)


def difference(network: Network, slot: int, tokens: Sequence[int]) -> float:
    """The largest one between what a slot holds of `tokens` and a reading of them at once."""
    network.forward([Span(FRESH, range(len(tokens)), tuple(tokens), 0)])
    found = [
        (network.column(slot, column) - network.column(FRESH, column)).abs().max()
        for column in range(len(tokens))
    ]
    return float(max(found))


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(walked(WORDS), min_size=1, max_size=6))
def test_every_commit_leaves_a_fresh_prefix(
    network: Network, steps: list[tuple[DraftTree, AcceptedPath]]
) -> None:
    network.reset()
    target = NetworkTarget(network, SamplingParams(0.0))
    assert list(target.begin(PROMPT))
    text = list(PROMPT)
    for tree, walk in steps:
        target.verify(DraftProposal(tree))
        target.commit(walk)
        text += walk.tokens(tree)
        assert target.tokens == text
        assert difference(network, 0, text[:-1]) <= TOLERANCE


@pytest.mark.parametrize("most", [1, 6])
def test_roll_back_at_every_depth(network: Network, most: int) -> None:
    """From nothing accepted to all of it, each followed by a step that needs the right keys."""
    tree = DraftTree.chain([11 + n for n in range(most)])
    for accepted in range(most + 1):
        network.reset()
        target = NetworkTarget(network, SamplingParams(0.0))
        assert list(target.begin(PROMPT))
        target.verify(DraftProposal(tree))
        target.commit(AcceptedPath(tuple(range(accepted)), 50))
        text = [*PROMPT, *tree.tokens[:accepted], 50]
        assert difference(network, 0, text[:-1]) <= TOLERANCE
        law = target.verify(DraftProposal())(ROOT)
        read = network.forward([Span(FRESH, range(len(text)), text, 1)])[FRESH]
        assert (law == SamplingParams(0.0).distribution(read.logits[-1])).all()
        logits = target._reading
        assert logits is not None
        np.testing.assert_allclose(logits.logits[0], read.logits[-1], rtol=0, atol=1e-6)


def test_rows_beside_the_draft_leave_nothing(network: Network) -> None:
    network.reset()
    target = NetworkTarget(network, SamplingParams(0.0))
    assert list(target.begin(PROMPT))
    tree = DraftTree((11, 12, 13), (ROOT, ROOT, 1))
    aux = AuxiliaryRows((40, 41), (1, ROOT), (2, 1), np.eye(2, dtype=np.bool_))
    text = list(PROMPT)
    for walk in (AcceptedPath((1, 2), 20), AcceptedPath((), 21), AcceptedPath((0,), 22)):
        target.verify(DraftProposal(tree, aux))
        target.commit(walk)
        text += walk.tokens(tree)
        assert difference(network, 0, text[:-1]) <= TOLERANCE


@settings(max_examples=25, deadline=None)
@given(data=st.data(), rows=st.integers(2, 4), steps=st.integers(1, 4))
def test_rows_with_trees_of_their_own_share_a_pass(
    network: Network, data: st.DataObject, rows: int, steps: int
) -> None:
    network.reset()
    texts = [[1 + row, *PROMPT[: 1 + row]] for row in range(rows)]
    network.forward([Span(r, range(len(t) - 1), t[:-1], 0) for r, t in enumerate(texts)])
    for _ in range(steps):
        drawn = [data.draw(walked(WORDS, 5)) for _ in range(rows)]
        spans = [
            draft_span(DraftProposal(tree), row, (len(text) - 1,), text[-1:], None)
            for row, (text, (tree, _)) in enumerate(zip(texts, drawn, strict=True))
        ]
        read = network.forward(spans)
        for row, (text, (tree, walk)) in enumerate(zip(texts, drawn, strict=True)):
            seen = target_outputs(read[row], DraftProposal(tree), walk, text[-1:])
            network.keep(row, len(text), walk.path)
            assert seen.tokens == (text[-1], *walk.tokens(tree)[:-1])
            text += walk.tokens(tree)
    for row, text in enumerate(texts):
        assert difference(network, row, text[:-1]) <= TOLERANCE


def test_a_commit_that_gathers_nothing_would_be_found(network: Network) -> None:
    network.reset()
    target = NetworkTarget(network, SamplingParams(0.0))
    assert list(target.begin(PROMPT))
    tree = DraftTree((11, 12), (ROOT, ROOT))
    target.verify(DraftProposal(tree))
    text = [*PROMPT, 12]  # the second sibling, whose keys lie behind those of the first
    assert difference(network, 0, text) > 1e-3


@pytest.mark.model
def test_the_cache_of_a_real_model(smollm2_network: Network) -> None:
    """Nine heads on three, float32: rounding differs with the shape of a pass, and nothing else."""
    network = smollm2_network
    target = NetworkTarget(network, SamplingParams(0.0))
    text = [1, 4093, 198, 5195, 314, 260, 5217, 282, 4649, 47]
    assert list(target.begin(text))
    tree = DraftTree((504, 28, 314, 260, 253, 1838), (ROOT, ROOT, 0, 2, 2, 3))
    worst = 0.0
    for walk in (
        AcceptedPath((0, 2, 3, 5), 30),
        AcceptedPath((), 198),
        AcceptedPath((1,), 314),
        AcceptedPath((0, 2, 4), 282),
    ):
        target.verify(DraftProposal(tree))
        target.commit(walk)
        text += walk.tokens(tree)
        worst = max(worst, difference(network, 0, text[:-1]))
    assert 0.0 < worst <= SMOLLM2_TOLERANCE
