"""Placed prompts compute what one forward pass with an explicit mask and positions does.

Also where their keys and values were fetched from the rows that had computed them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, LlamaForCausalLM

from tests.serving.local.playback import EXACT, Playback, asking
from weft.core.errors import ModelRequestError
from weft.core.ports.model import ModelRequest, Placed
from weft.core.values import Completion

Play = Callable[..., Playback]


@pytest.fixture(scope="module")
def model(tiny_path: Path) -> LlamaForCausalLM:
    loaded: LlamaForCausalLM = AutoModelForCausalLM.from_pretrained(
        tiny_path, dtype=torch.float64, attn_implementation="eager"
    )
    return loaded


def placed(tokens: list[int], stretches: list[Placed], **sampling: Any) -> ModelRequest:
    return replace(asking(*tokens, **sampling), placement=tuple(stretches), logprobs=True)


def forward(
    model: LlamaForCausalLM, tokens: list[int], stretches: list[Placed], written: list[int]
) -> torch.Tensor:
    """Logits [written + 1, vocabulary], all in one pass from the last prompt token on."""
    positions: list[int] = []
    stretch_of: list[int] = []
    for number, stretch in enumerate(stretches):
        positions += range(stretch.position, stretch.position + stretch.tokens)
        stretch_of += [number] * stretch.tokens
    after = max(positions) + 1
    positions += range(after, after + len(written))
    stretch_of += [len(stretches)] * len(written)
    count = len(positions)
    mask = torch.full((count, count), float("-inf"), dtype=torch.float64)
    for a in range(count):
        for b in range(a + 1):
            end = stretch_of[a] == len(stretches)
            if (
                end
                or stretch_of[a] == stretch_of[b]
                or stretch_of[b] in stretches[stretch_of[a]].sees
            ):
                mask[a, b] = 0.0
    with torch.inference_mode():
        logits = model(
            torch.tensor([[*tokens, *written]]),
            attention_mask=mask[None, None],
            position_ids=torch.tensor([positions]),
        ).logits[0]
    found: torch.Tensor = logits[len(tokens) - 1 :]
    return found


def check(model: LlamaForCausalLM, request: ModelRequest, answer: Completion) -> None:
    written = list(answer.token_ids)
    logits = forward(model, list(request.prompt_token_ids), list(request.placement), written[:-1])
    assert written == logits.argmax(dim=-1).tolist()
    wanted = logits.log_softmax(dim=-1)[torch.arange(len(written)), written]
    torch.testing.assert_close(torch.tensor(answer.logprobs).double(), wanted, rtol=1e-5, atol=1e-5)


def branches(source: random.Random, count: int) -> tuple[list[int], list[list[int]], list[int]]:
    def fresh(most: int) -> list[int]:
        return [source.randrange(3, 300) for _ in range(source.randint(1, most))]

    return fresh(30), [fresh(12) for _ in range(count)], fresh(5)


def join(
    prefix: list[int], paths: list[list[int]], end: list[int], **sampling: Any
) -> ModelRequest:
    """Multiverse's: the paths begin side by side after the prefix, the end follows the longest."""
    stretches = [Placed(len(prefix), 0)]
    stretches += [Placed(len(path), len(prefix), (0,)) for path in paths]
    after = len(prefix) + max(map(len, paths))
    stretches.append(Placed(len(end), after, tuple(range(len(paths) + 1))))
    return placed([*prefix, *(t for path in paths for t in path), *end], stretches, **sampling)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32), count=st.integers(1, 4), prefill_tokens=st.sampled_from([1, 5, 256])
)
def test_a_join_that_nobody_has_computed_before(
    play: Play, model: LlamaForCausalLM, seed: int, count: int, prefill_tokens: int
) -> None:
    request = join(*branches(random.Random(seed), count))
    answer = play(replace(EXACT, prefill_tokens=prefill_tokens)).answer(request)
    assert answer.usage.cached_tokens == 0
    check(model, request, answer)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32), count=st.integers(1, 4), prefill_tokens=st.sampled_from([1, 5, 256])
)
def test_a_join_takes_over_what_the_children_wrote(
    play: Play, model: LlamaForCausalLM, seed: int, count: int, prefill_tokens: int
) -> None:
    source = random.Random(seed)
    prefix, heads, end = branches(source, count)
    playback = play(replace(EXACT, prefill_tokens=prefill_tokens))
    playback.answer(asking(*prefix, max_tokens=1))
    children = [
        playback.add(asking(*prefix, *head, max_tokens=source.randint(1, 9))) for head in heads
    ]
    playback.finish()
    closer = 299
    paths = [
        [*head, *child.completion.token_ids, closer]
        for head, child in zip(heads, children, strict=True)
    ]
    request = join(prefix, paths, end)
    answer = playback.answer(request)
    # a child has not read the last token it wrote; the closing one was never there
    assert answer.usage.cached_tokens == len(prefix) + sum(len(path) - 2 for path in paths)
    check(model, request, answer)
    again = playback.answer(request)
    assert again.usage.cached_tokens == len(request.prompt_token_ids) - 1
    assert again.token_ids == answer.token_ids
    check(model, request, again)


def random_stretches(source: random.Random) -> list[Placed]:
    stretches: list[Placed] = []
    for number in range(source.randint(1, 6)):
        sees = tuple(sorted(source.sample(range(number), source.randint(0, number))))
        stretches.append(Placed(source.randint(1, 8), source.randint(0, 30), sees))
    return stretches


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_any_placement_however_often_parts_of_it_were_computed(
    play: Play, model: LlamaForCausalLM, seed: int
) -> None:
    """Few different tokens and stretches, so that requests often share some."""
    source = random.Random(seed)
    playback = play(replace(EXACT, max_batch=4, prefill_tokens=16))
    stretches = random_stretches(source)
    tokens = [source.randrange(3, 5) for _ in range(sum(s.tokens for s in stretches))]
    for _ in range(4):
        if source.random() < 0.4:
            stretches = random_stretches(source)
            tokens = [source.randrange(3, 5) for _ in range(sum(s.tokens for s in stretches))]
        at = source.randrange(len(tokens))
        tokens[at] = source.randrange(3, 5)
        request = placed(tokens, stretches, max_tokens=source.randint(1, 4))
        check(model, request, playback.answer(request))
        playback.answer(asking(*tokens, max_tokens=3))


def test_a_nested_join_is_fetched_too(play: Play, model: LlamaForCausalLM) -> None:
    """A child that has itself joined two paths; then its parent joins it with another child."""
    playback = play()
    prefix, left, right = [5, 6, 7, 8], [20, 21, 22], [30, 31]
    inner = [Placed(4, 0), Placed(3, 4, (0,)), Placed(2, 4, (0,)), Placed(2, 7, (0, 1, 2))]
    heard = [
        playback.add(placed([*prefix, *left, *right, 40, 41], inner, max_tokens=4)),
        playback.add(asking(*prefix, 50, 51, max_tokens=5)),
    ]
    playback.finish()
    child, other = (h.completion for h in heard)
    wrote = list(child.token_ids)
    stretches = [
        *inner[:3],
        Placed(2 + len(wrote), 7, (0, 1, 2)),
        Placed(2 + len(other.token_ids), 4, (0,)),
        Placed(1, 7 + 2 + len(wrote), (0, 1, 2, 3, 4)),
    ]
    tokens = [*prefix, *left, *right, 40, 41, *wrote, 50, 51, *other.token_ids, 60]
    request = placed(tokens, stretches, max_tokens=6)
    answer = playback.answer(request)
    assert answer.usage.cached_tokens == len(tokens) - 1 - 2  # the last ones that were written
    check(model, request, answer)


def test_one_stretch_is_an_ordinary_prompt(play: Play) -> None:
    playback = play()
    tokens = list(range(20, 60))
    ordinary = playback.answer(asking(*tokens))
    as_one = playback.answer(placed(tokens, [Placed(40, 0)]))
    assert as_one.token_ids == ordinary.token_ids
    assert as_one.usage.cached_tokens == ordinary.usage.cached_tokens + 39
    after = playback.answer(asking(*tokens, 9))
    assert after.usage.cached_tokens == 40


def test_an_ordinary_request_takes_over_only_what_stands_as_in_it(play: Play) -> None:
    playback = play()
    tokens = [5, 6, 7, 8, 9, 10, 11]
    playback.answer(placed(tokens, [Placed(3, 0), Placed(2, 3, (0,)), Placed(2, 3, (0,))]))
    answer = playback.answer(asking(*tokens, 12))
    assert answer.usage.cached_tokens == 5
    assert answer.token_ids == play().answer(asking(*tokens, 12)).token_ids


def test_positions_bound_a_prompt_and_not_its_tokens(play: Play, model: LlamaForCausalLM) -> None:
    playback = play(replace(EXACT, max_context_tokens=30))
    paths = [[n] * 12 for n in range(20, 25)]
    request = join([5, 6, 7], paths, [9], max_tokens=100)
    answer = playback.answer(request)
    assert len(answer.token_ids) == 30 - 16
    check(model, request, answer)
    with pytest.raises(ModelRequestError, match="fit into 30"):
        playback.answer(placed([5, 6], [Placed(1, 0), Placed(1, 29, (0,))]))


@pytest.mark.parametrize(
    "wrong", [Placed(2, -1), Placed(2, 0, (1,)), Placed(2, 0, (-1,)), Placed(2, 0, (5,))]
)
def test_what_cannot_be_placed_is_refused(play: Play, wrong: Placed) -> None:
    with pytest.raises(ModelRequestError, match="stretch 1 of the placement"):
        play().answer(placed([5, 6, 7], [Placed(1, 0), wrong]))
    with pytest.raises(ModelRequestError, match="stretch 0 of the placement"):
        play().answer(placed([5, 6, 7], [Placed(0, 0), Placed(3, 0)]))


def test_what_is_still_being_read_is_not_taken_over(play: Play, model: LlamaForCausalLM) -> None:
    playback = play(replace(EXACT, prefill_tokens=4))
    prefix, paths, end = branches(random.Random(5), 3)
    request = join(prefix, paths, end)
    heard = [playback.add(request)]
    playback.batcher.step()
    heard.append(playback.add(request))
    ordinary = playback.add(asking(*prefix, *paths[0], 7))
    playback.finish()
    for h in heard:
        check(model, request, h.completion)
    wanted = play().answer(asking(*prefix, *paths[0], 7))
    assert ordinary.completion.token_ids == wanted.token_ids
