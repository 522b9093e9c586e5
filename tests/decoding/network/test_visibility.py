"""Texts that are not read from the left: the attention is that of the model with a mask by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

from tests.serving.local.playback import EXACT
from weft.decoding.network.network import Network
from weft.decoding.network.packing import Span, pack
from weft.decoding.network.visibility import BlockMask

TEXT = [5, 9, 3, 7, 11, 2, 30, 41, 8, 19, 23]


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


@pytest.fixture(scope="module")
def plain(tiny_path: Path) -> LlamaForCausalLM:
    return LlamaForCausalLM.from_pretrained(tiny_path, attn_implementation="eager").eval()


def by_hand(
    plain: LlamaForCausalLM, tokens: Sequence[int], positions: Sequence[int], sees: np.ndarray
) -> np.ndarray:
    """transformers' own attention with a mask of four dimensions: it bypasses the causal one."""
    mask = torch.zeros(1, 1, *sees.shape).masked_fill(~torch.from_numpy(sees), -1e30)
    with torch.inference_mode():
        out = plain(
            input_ids=torch.tensor([tokens]),
            position_ids=torch.tensor([positions]),
            attention_mask=mask,
            use_cache=False,
        )
    return out.logits[0].numpy()


def read(network: Network, slot: int, columns: Sequence[int], sight: BlockMask) -> np.ndarray:
    tokens = [TEXT[column] for column in columns]
    return network.forward([Span(slot, columns, tokens, len(tokens), sight)])[slot].logits


def horizons(sight: BlockMask, length: int) -> np.ndarray:
    slots = np.arange(length)
    if sight.block:
        ends = np.minimum((slots // sight.block + 1) * sight.block, sight.reach)
    else:
        ends = np.full(length, sight.reach)
    ends[: sight.causal] = slots[: sight.causal] + 1
    return slots[None] < ends[:, None]


@pytest.mark.parametrize(
    "sight",
    [
        BlockMask(11),
        BlockMask(11, block=4),
        BlockMask(11, block=1),
        BlockMask(11, causal=5),
        BlockMask(11, causal=11),
    ],
    ids=["full", "blocks", "causal", "encoder", "prefill"],
)
def test_a_text_is_seen_as_with_a_mask_by_hand(
    network: Network, plain: LlamaForCausalLM, sight: BlockMask
) -> None:
    network.reset()
    expected = by_hand(plain, TEXT, range(11), horizons(sight, 11))
    np.testing.assert_allclose(read(network, 2, range(11), sight), expected, rtol=0, atol=2e-5)


def test_part_of_a_text_is_read_into_the_rest(network: Network) -> None:
    network.reset()
    whole = read(network, 0, range(11), BlockMask(11))
    some = read(network, 0, [2, 3, 7], BlockMask(11))
    np.testing.assert_allclose(some, whole[[2, 3, 7]], rtol=0, atol=2e-5)
    one = read(network, 0, [10], BlockMask(11))
    np.testing.assert_allclose(one, whole[[10]], rtol=0, atol=2e-5)


def test_a_reach_hides_what_lies_behind_it(network: Network, plain: LlamaForCausalLM) -> None:
    network.reset()
    read(network, 0, range(11), BlockMask(11))
    short = read(network, 0, range(6), BlockMask(6))
    expected = by_hand(plain, TEXT[:6], range(6), np.ones((6, 6), dtype=bool))
    np.testing.assert_allclose(short, expected, rtol=0, atol=2e-5)


def test_copies_stand_beside_the_text(network: Network, plain: LlamaForCausalLM) -> None:
    network.reset()
    sight = BlockMask(11, copies=((3,), (7, 8)), first_copy=11)
    tokens = [*TEXT, 50, 51, 52]
    span = Span(0, range(14), tokens, 14, sight)
    found = network.forward([span])[0].logits
    sees = np.ones((14, 14), dtype=bool)
    sees[:, 11:] = False
    sees[11, 3], sees[11, 11] = False, True
    sees[12:, 7:9], sees[12:, 12:] = False, True
    expected = by_hand(plain, tokens, [*range(11), 3, 7, 8], sees)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
    alone = by_hand(plain, TEXT, range(11), sees[:11, :11])
    np.testing.assert_allclose(found[:11], alone, rtol=0, atol=2e-5)


def test_a_copy_in_an_earlier_block_does_not_see_the_one_in_the_next(network: Network) -> None:
    network.reset()
    tokens = [*TEXT, TEXT[3], 50]
    sight = BlockMask(11, block=4, copies=((3, 4),), first_copy=11)
    one = network.forward([Span(0, range(13), tokens, 2, sight)])[0].logits[0]
    tokens[-1] = 51
    other = network.forward([Span(0, range(13), tokens, 2, sight)])[0].logits[0]
    np.testing.assert_array_equal(one, other)


def test_rows_that_see_alike_attend_together_and_keep_apart(network: Network) -> None:
    network.reset()
    sights = [
        BlockMask(11),
        BlockMask(11),
        BlockMask(11, block=4),
        BlockMask(11, block=4),
        BlockMask(9),
    ]
    texts = [[(token + 7 * row) % 60 for token in TEXT[: s.reach]] for row, s in enumerate(sights)]
    spans = [
        Span(row, range(len(text)), text, 3, sight, rows=(0, 5, 2))
        for row, (text, sight) in enumerate(zip(texts, sights, strict=True))
    ]
    step = pack(spans, queries_per_key=3, dtype=torch.float32, device=torch.device("cpu"))
    assert [(group.low, group.high) for group in step.groups] == [(0, 2), (2, 4), (4, 5)]
    assert [group.mask is None for group in step.groups] == [True, False, True]
    together = network.forward(spans)
    for span in spans:
        alone = network.forward(
            [Span(9, span.columns, span.tokens, len(span.tokens), span.placement)]
        )
        expected = alone[9].logits[[0, 5, 2]]
        np.testing.assert_allclose(together[span.slot].logits, expected, rtol=0, atol=2e-5)


def test_single_tokens_of_all_kinds_share_a_pass(network: Network) -> None:
    network.reset()
    for slot in range(3):
        read(network, slot, range(11), BlockMask(11))
    spans = [
        Span(0, (10,), TEXT[10:], 1, BlockMask(11)),
        Span(1, (4,), TEXT[4:5], 1, BlockMask(11)),
        Span(2, (5,), TEXT[5:6], 1),
    ]
    together = network.forward(spans)
    for span in spans:
        alone = network.forward([span])
        np.testing.assert_allclose(
            together[span.slot].logits, alone[span.slot].logits, rtol=0, atol=2e-5
        )


def test_values_are_those_of_the_tokens(network: Network) -> None:
    network.reset()
    read(network, 1, range(11), BlockMask(11))
    values = network.values(1, 1, [3, 0])
    column = network.column(1, 3)[1, 1]
    torch.testing.assert_close(values[0], column.flatten())
    assert values.shape == (2, 2 * 8)
