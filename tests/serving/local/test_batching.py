"""What a row writes does not depend on who shares its forward passes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from tests.serving.local.playback import EXACT, Heard, Playback, asking
from weft.core.errors import ModelRequestError, ModelUnavailable
from weft.core.ports import Prefilled, TextDelta
from weft.serving.local import LocalOptions

Play = Callable[..., Playback]


def prompts(seed: int, count: int) -> list[tuple[int, ...]]:
    """Random prompts; about half continue an earlier one, so that prefixes are shared."""
    source = random.Random(seed)
    made: list[tuple[int, ...]] = []
    for _ in range(count):
        fresh = tuple(source.randrange(3, 300) for _ in range(source.randint(1, 40)))
        base = source.choice(made) if made and source.random() < 0.5 else ()
        made.append((base[: source.randint(0, len(base))] + fresh)[:100])
    return made


@pytest.fixture(scope="module")
def alone(play: Play) -> Callable[[tuple[int, ...], int], tuple[int, ...]]:
    """What the model writes to a prompt when it is the only one."""
    cache: dict[tuple[tuple[int, ...], int], tuple[int, ...]] = {}

    def written(prompt: tuple[int, ...], tokens: int) -> tuple[int, ...]:
        if (prompt, tokens) not in cache:
            answer = play().answer(asking(*prompt, max_tokens=tokens))
            cache[prompt, tokens] = answer.token_ids
        return cache[prompt, tokens]

    return written


def test_greedy_equals_transformers_own_generate(tiny_path: Path, play: Play) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny_path, dtype=torch.float32)
    for prompt in prompts(1, 6):
        ids = torch.tensor([prompt])
        written = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False
        )[0, len(prompt) :]
        answer = play().answer(asking(*prompt, max_tokens=12, extra={}))
        assert answer.token_ids == tuple(written.tolist())


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    arrivals=st.lists(st.integers(0, 3), min_size=2, max_size=9),
    max_batch=st.integers(1, 6),
    prefill_tokens=st.sampled_from([1, 7, 256]),
)
def test_rows_that_join_and_leave_write_what_they_write_alone(
    play: Play,
    alone: Callable[[tuple[int, ...], int], tuple[int, ...]],
    seed: int,
    arrivals: list[int],
    max_batch: int,
    prefill_tokens: int,
) -> None:
    playback = play(replace(EXACT, max_batch=max_batch, prefill_tokens=prefill_tokens))
    source = random.Random(seed)
    asked = []
    for prompt, steps_before in zip(prompts(seed, len(arrivals)), arrivals, strict=True):
        for _ in range(steps_before):
            playback.batcher.step()
            assert len(playback.batcher.rows) <= max_batch
        tokens = source.randint(1, 12)
        asked.append((prompt, tokens, playback.add(asking(*prompt, max_tokens=tokens))))
    playback.finish()
    for prompt, tokens, heard in asked:
        assert heard.completion.token_ids == alone(prompt, tokens)
        assert heard.completion.usage.prompt_tokens == len(prompt)


def test_one_forward_pass_serves_all_rows(play: Play) -> None:
    playback = play()
    heard = [playback.add(asking(10 + n, 20 + n, max_tokens=5)) for n in range(8)]
    playback.finish()
    assert playback.batcher.forwards == 5
    assert [h.completion.usage.forwards for h in heard] == [5] * 8


def test_a_cancelled_row_is_gone_before_the_next_step(play: Play) -> None:
    playback = play()
    doomed, other = playback.add(asking(5, 6, 7)), playback.add(asking(8, 9))
    playback.batcher.step()
    doomed.cancelled = True
    playback.batcher.step()
    assert [row.ticket for row in playback.batcher.rows] == [other]
    assert [type(event) for event in doomed.events] == [Prefilled, TextDelta]
    playback.finish()
    assert len(other.completion.token_ids) == 8


def test_a_cancelled_request_that_still_waits_never_runs(play: Play) -> None:
    playback = play(replace(EXACT, max_batch=1))
    first, waiting = playback.add(asking(5)), playback.add(asking(6))
    playback.batcher.step()
    waiting.cancelled = True
    playback.finish()
    assert first.finished
    assert waiting.events == []


def order_of_first_tokens(playback: Playback, heard: list[Heard]) -> list[int]:
    order: list[int] = []
    while not playback.batcher.idle:
        playback.batcher.step()
        order += [i for i, h in enumerate(heard) if h.events and i not in order]
    return order


def test_the_queue_goes_by_priority_then_by_arrival(play: Play) -> None:
    playback = play(replace(EXACT, max_batch=1))
    urgency = [0, 1, 0, 5, 1]
    heard = [
        playback.add(replace(asking(9, n, max_tokens=2), priority=priority))
        for n, priority in enumerate(urgency, start=30)
    ]
    assert order_of_first_tokens(playback, heard) == [3, 1, 4, 0, 2]


def test_the_cache_bounds_how_many_rows_run_together(play: Play) -> None:
    playback = play(replace(EXACT, cache_tokens=40))
    heard = [playback.add(asking(*range(10, 20), max_tokens=10)) for _ in range(4)]
    most = 0
    while not playback.batcher.idle:
        playback.batcher.step()
        most = max(most, len(playback.batcher.rows))
    assert most == 2
    assert all(h.finished for h in heard)


def test_a_request_larger_than_the_cache_runs_alone(play: Play) -> None:
    playback = play(replace(EXACT, cache_tokens=4))
    assert len(playback.answer(asking(*range(10, 40))).token_ids) == 8


def test_a_known_prefix_is_not_read_again(play: Play) -> None:
    playback = play()
    system = tuple(range(50, 110))
    first = playback.answer(asking(*system, 7, 8))
    second = playback.answer(asking(*system, 9))
    again = playback.answer(asking(*system, 9))
    assert first.usage.cached_tokens == 0
    assert second.usage.cached_tokens == len(system)
    assert again.usage.cached_tokens == len(system)
    assert second.token_ids == again.token_ids == play().answer(asking(*system, 9)).token_ids


def test_requests_that_arrive_together_read_their_common_prefix_once(play: Play) -> None:
    playback = play()
    system = tuple(range(50, 110))
    heard = [playback.add(asking(*system, 120 + n)) for n in range(6)]
    playback.finish()
    cached = [h.completion.usage.cached_tokens for h in heard]
    assert cached == [0] + [len(system)] * 5
    for n, h in enumerate(heard):
        assert h.completion.token_ids == play().answer(asking(*system, 120 + n)).token_ids


def test_a_long_prompt_does_not_hold_up_those_that_write(play: Play) -> None:
    playback = play(replace(EXACT, prefill_tokens=10))
    playback.add(asking(5, max_tokens=20))
    playback.batcher.step()
    reader = playback.add(asking(*range(10, 90), max_tokens=20))
    for steps in range(1, 9):
        assert not reader.events
        playback.batcher.step()
        written = [len(row.tokens) - row.prompt_tokens for row in playback.batcher.rows]
        assert written == [1 + steps, int(steps == 8)]


def test_a_prompt_must_leave_room_for_an_answer(play: Play) -> None:
    playback = play(replace(EXACT, max_context_tokens=10))
    with pytest.raises(ModelRequestError, match="fit into 10"):
        playback.answer(asking(*range(10, 20)))
    answer = playback.answer(asking(*range(10, 17), max_tokens=100))
    assert (len(answer.token_ids), answer.finish_reason) == (3, "length")


def test_aborting_ends_what_runs_and_what_waits_and_leaves_the_batcher_fit(play: Play) -> None:
    playback = play(replace(EXACT, max_batch=1))
    expected = playback.answer(asking(5, 6, 7))
    heard = [playback.add(asking(5, 6, 7)) for _ in range(2)]
    playback.batcher.step()
    playback.batcher.abort(ModelUnavailable("gone"))
    for h in heard:
        with pytest.raises(ModelUnavailable, match="gone"):
            _ = h.completion
    assert playback.batcher.idle
    assert playback.answer(asking(5, 6, 7)).token_ids == expected.token_ids


def test_bfloat16_writes_too(play: Play) -> None:
    playback = play(LocalOptions(dtype="bfloat16"))
    heard = [playback.add(asking(*prompt)) for prompt in prompts(3, 4)]
    playback.finish()
    assert all(len(h.completion.token_ids) == 8 for h in heard)
