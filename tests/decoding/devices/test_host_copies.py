"""What crosses between a device and the host in a step: ids, whatever the vocabulary is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

import pytest

from tests.fake_device import to_device, to_host
from tests.serving.local.playback import EXACT, Heard, Playback, asking
from weft.core.ports import ModelRequest
from weft.core.ports.model import AttentionLayout, ConcurrentAttention
from weft.core.values import Completion, Lossless

Play = Callable[..., Playback]
PROMPT = (5, 60, 61, 62, 7, 60, 61, 62, 7, 60, 61)
MIXED = (
    asking(*PROMPT, max_tokens=12),
    asking(*PROMPT[1:], max_tokens=12, temperature=0.8, seed=3),
    asking(*PROMPT[2:], max_tokens=12, temperature=1.3, top_p=0.7, seed=4),
    asking(*PROMPT[3:], max_tokens=12, temperature=1.0, top_k=5, seed=5),
    asking(*PROMPT[4:], max_tokens=12, temperature=0.9, min_p=0.05, seed=6),
)


def started(playback: Playback, asked: Sequence[ModelRequest]) -> list[Heard]:
    """The requests, each with its first tokens."""
    heard = [playback.add(one) for one in asked]
    for _ in range(2):
        playback.batcher.step()
    to_host.clear()
    to_device.clear()
    return heard


def ended(playback: Playback, heard: list[Heard]) -> list[Completion]:
    playback.finish()
    playback.batcher.close()
    return [one.completion for one in heard]


def written(play: Play, where: object, asked: Sequence[ModelRequest]) -> list[tuple[int, ...]]:
    playback = play(where)
    heard = [playback.add(one) for one in asked]
    return [one.token_ids for one in ended(playback, heard)]


def test_a_step_copies_one_id_for_each_row(device: str, play: Play) -> None:
    playback = play(replace(EXACT, device=device))
    heard = started(playback, MIXED)
    playback.batcher.step()
    assert to_host == [len(MIXED)], "one copy, of ids"
    numbers, *others = sorted(to_device)
    assert len(to_device) <= 3, "the tokens' numbers, a mask, and how the rows sample"
    assert numbers <= 6 * len(MIXED)
    assert max(others, default=0) <= 128 * len(MIXED)
    ended(playback, heard)


def test_rows_sample_there_as_on_the_cpu(device: str, play: Play) -> None:
    assert written(play, replace(EXACT, device=device), MIXED) == written(play, EXACT, MIXED)


def test_greedy_rows_need_no_number(device: str, play: Play) -> None:
    playback = play(replace(EXACT, device=device))
    heard = started(playback, [MIXED[0], asking(9, 8, 7, max_tokens=12)])
    playback.batcher.step()
    assert to_host == [2]
    assert len(to_device) <= 2
    ended(playback, heard)


@pytest.mark.parametrize("name", ["lookup", "suffix"])
@pytest.mark.parametrize("temperature", [0.0, 0.01])
def test_drafts_are_verified_there(name: str, temperature: float, device: str, play: Play) -> None:
    """All that comes back of a tree of drafts is one id for each of its nodes."""
    one = replace(
        asking(*PROMPT, max_tokens=70, temperature=temperature, seed=1), decode=Lossless(name)
    )
    playback = play(replace(EXACT, device=device))
    heard = started(playback, [one])
    (completion,) = ended(playback, heard)
    assert completion.speculation is not None
    assert completion.speculation.accepted > 0, "else nothing was verified"
    assert max(to_host) <= 1 + 32, "ids of the nodes, and no logits"
    assert [completion.token_ids] == written(
        play, EXACT, [replace(one, decode=Lossless("autoregressive"))]
    )


def test_rows_that_need_the_host_share_one_copy(device: str, play: Play) -> None:
    """Log probabilities are computed from logits: those of a pass cross together."""
    playback = play(replace(EXACT, device=device))
    asked = [replace(one, logprobs=True) for one in MIXED[:3]]
    heard = started(playback, [*asked, MIXED[3]])
    playback.batcher.step()
    ids, logits = sorted(to_host)
    assert ids == 1, "of the row that needs none"
    assert logits % 4 == 0
    assert logits > 400, "all rows of the pass, once"
    found = [one.logprobs for one in ended(playback, heard)[:3]]
    assert all(len(each) == 12 for each in found)


@pytest.mark.parametrize("layout", get_args(AttentionLayout))
def test_workers_of_concurrent_attention_write_there_as_on_the_cpu(
    layout: AttentionLayout, device: str, play: Play
) -> None:
    found = []
    for where in (EXACT, replace(EXACT, device=device)):
        playback = play(where)
        asked = [
            replace(
                asking(*PROMPT, index + 1, max_tokens=8, temperature=0.8, seed=index),
                attention=ConcurrentAttention("g", 2, index, layout),
            )
            for index in range(2)
        ]
        heard = [Heard(one) for one in asked]
        playback.batcher.add(*heard)
        to_host.clear()
        found.append([one.token_ids for one in ended(playback, heard)])
        assert max(to_host, default=0) <= 2, "ids only"
    assert found[0] == found[1]
