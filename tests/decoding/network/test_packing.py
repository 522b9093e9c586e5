"""How attention of a pass is laid out: blocks of prompts, drafts together or token by token."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import weft.decoding.network.network as network_module
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions
from weft.decoding.network.packing import PackedBatch, Span, pack, whole_lanes


def packed(*spans: Span, by_token: bool = False) -> PackedBatch:
    device = torch.device("cpu")
    return pack(
        spans,
        queries_per_key=2,
        dtype=torch.float32,
        device=device,
        padding=whole_lanes,
        by_token=by_token,
    )


def test_a_prompt_attends_in_blocks_counted_from_its_beginning() -> None:
    step = packed(Span(3, range(30, 70), range(40), 1, prompt=True))
    laid = [(g.first, g.last, g.low, g.high, g.columns, g.block, g.lead) for g in step.groups]
    assert laid == [
        (0, 2, 3, 4, 32, 32, 30),
        (2, 34, 3, 4, 64, 32, 0),
        (34, 40, 3, 4, 96, 32, 0),
    ]
    for group in step.groups:
        mask = group.mask
        assert mask is not None
        assert mask.shape == (1, 1, 2 * 32, group.columns)
        for row in range(group.lead, group.lead + group.last - group.first):
            column = group.columns - 32 + row
            for head in range(2):
                seen = mask[0, 0, head * 32 + row] == 0
                assert seen.tolist() == [at <= column for at in range(group.columns)]


def test_a_gap_begins_a_block() -> None:
    step = packed(Span(0, [0, 1, 5, 6], [1, 2, 3, 4], 1, prompt=True))
    assert [(g.first, g.last, g.lead) for g in step.groups] == [(0, 2, 0), (2, 4, 5)]


def test_a_token_of_a_prompt_alone_is_in_a_block_and_one_of_an_answer_is_not() -> None:
    step = packed(Span(0, [40], [1], 1, prompt=True), Span(1, [40], [1], 1), Span(2, [7], [1], 1))
    assert [(span.slot) for span in step.spans] == [1, 2, 0]
    assert [(g.low, g.high, g.block) for g in step.groups] == [(1, 3, 0), (0, 1, 32)]


@pytest.mark.parametrize(("by_token", "shape"), [(True, (4, 1, 1, 32)), (False, (1, 1, 8, 32))])
def test_drafts_attend_together_or_token_by_token(by_token: bool, shape: tuple[int, ...]) -> None:
    (group,) = packed(Span(0, range(9, 13), range(4), 4), by_token=by_token).groups
    assert group.mask is not None
    assert group.mask.shape == shape
    assert group.block == int(by_token)
    rows = (group.mask[:, 0, 0] if by_token else group.mask[0, 0, :4]) == 0
    assert [row.sum().item() for row in rows] == [10, 11, 12, 13]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_drafts_that_attend_token_by_token_have_the_same_logits(
    tiny_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_module, "rows_depend", lambda *_: True)
    network = Network.load(tiny_path, NetworkOptions(dtype=dtype, threads=1))
    tokens = [5, 9, 13, 200, 3, 77, 31, 8]
    found = network.forward([Span(0, range(8), tokens, 8)])[0].logits
    monkeypatch.setattr(network_module, "rows_depend", lambda *_: False)
    other = Network.load(tiny_path, NetworkOptions(dtype=dtype, threads=1))
    expected = other.forward([Span(0, range(8), tokens, 8)])[0].logits
    torch.testing.assert_close(
        torch.from_numpy(found), torch.from_numpy(expected), rtol=0.05, atol=0.05
    )
