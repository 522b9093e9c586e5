"""Workers of concurrent attention compute what one monolithic cache would give each of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

from tests.serving.local.monolithic import Slow, SlowGroup, Writer
from tests.serving.local.playback import EXACT, Heard, Playback, asking
from weft.core.errors import CapabilityError, ModelRequestError, ModelUnavailable
from weft.core.ports.model import AttentionLayout, ConcurrentAttention, ModelRequest
from weft.decoding.network.network import Network, SpanOutput
from weft.decoding.network.packing import Span
from weft.serving.local.autoregressive.batcher import Batcher
from weft.serving.local.vocabulary import Vocabulary

Play = Callable[..., Playback]
LAYOUTS: tuple[AttentionLayout, ...] = ("contiguous", "interleaved", "combined", "slots")
ENDS_A_STEP = 5  # token ids that this divides


@pytest.fixture(scope="module")
def slow(tiny_path: Path) -> Slow:
    return Slow(AutoModelForCausalLM.from_pretrained(tiny_path, dtype=torch.float32))


@pytest.fixture
def stepping(vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    """A random model writes no sentences: here some of its tokens end one."""
    plain = vocabulary.bytes_of
    monkeypatch.setattr(
        vocabulary, "bytes_of", lambda token: plain(token) if token % ENDS_A_STEP else b"x.\n\n"
    )


@dataclass
class Watched:
    """A playback that keeps the logits of every forward, by the ticket of the row."""

    playback: Playback

    def __post_init__(self) -> None:
        self.logits: dict[int, list[NDArray[np.float32]]] = {}
        network = self.playback.batcher._network
        forward = type(network).forward

        def watching(spans: Sequence[Span]) -> dict[int, SpanOutput]:
            found = forward(network, spans)
            for row in self.playback.batcher.rows:
                reading = None if row.slot is None else found.get(row.slot.number)
                if reading is not None and len(reading.logits):
                    self.logits.setdefault(id(row.ticket), []).append(reading.logits[-1].copy())
            return found

        network.forward = watching  # type: ignore[method-assign]

    def end(self) -> None:
        del self.playback.batcher._network.forward

    def add(self, *requests: ModelRequest) -> list[Heard]:
        heard = [Heard(request) for request in requests]
        self.playback.batcher.add(*heard)
        return heard


@pytest.fixture
def watch(play: Play) -> Iterator[Callable[..., Watched]]:
    made: list[Watched] = []

    def start(**options: object) -> Watched:
        made.append(Watched(play(replace(EXACT, **options))))  # type: ignore[arg-type]
        return made[-1]

    yield start
    for watched in made:
        watched.end()


def workers(
    prompts: list[tuple[int, ...]], layout: AttentionLayout, max_tokens: list[int], **texts: Any
) -> list[ModelRequest]:
    return [
        replace(
            asking(*prompt, max_tokens=tokens),
            attention=ConcurrentAttention("g", len(prompts), index, layout, **texts),
        )
        for index, (prompt, tokens) in enumerate(zip(prompts, max_tokens, strict=True))
    ]


def expected(
    slow: Slow, vocabulary: Vocabulary, asked: list[ModelRequest], heard: list[Heard]
) -> list[list[NDArray[np.float64]]]:
    """The logits behind every token that was drawn, by worker."""
    encode = vocabulary.encode_plain
    attention = asked[0].attention
    assert attention is not None
    writers = []
    for request in asked:
        opening = encode(attention.opening.replace("{step}", "1"))
        headings = encode(attention.others), encode(attention.own)
        writers.append(Writer([*request.prompt_token_ids], *headings, opening))
    group = SlowGroup(
        slow,
        writers,
        attention.layout,
        len(encode(attention.own)) + max(request.sampling.max_tokens or 0 for request in asked),
        lambda token: token % ENDS_A_STEP == 0,
    )
    left = [
        list(h.completion.token_ids[len(w.written) :]) for h, w in zip(heard, writers, strict=True)
    ]
    steps = [2 for _ in asked]
    found: list[list[NDArray[np.float64]]] = [[] for _ in asked]
    while any(left):
        for worker, logits in group.step().items():
            found[worker].append(logits.numpy())
            drawn = left[worker].pop(0)
            forced: list[int] = []
            if drawn % ENDS_A_STEP == 0 and attention.layout in ("interleaved", "combined"):
                forced = encode(attention.opening.replace("{step}", str(steps[worker])))
                steps[worker] += 1
                forced = forced[: len(left[worker])]
                assert left[worker][: len(forced)] == forced
                del left[worker][: len(forced)]
            group.write(worker, [drawn, *forced])
            if not left[worker]:
                group.end(worker)
    return found


def largest_error(
    watched: Watched, heard: list[Heard], wanted: list[list[NDArray[np.float64]]]
) -> float:
    errors = []
    for h, rows in zip(heard, wanted, strict=True):
        got = watched.logits[id(h)]
        assert len(got) == len(rows)
        errors += [abs(a - b).max() / abs(b).max() for a, b in zip(got, rows, strict=True)]
    return float(max(errors))


@pytest.mark.usefixtures("stepping")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_each_worker_sees_what_a_monolithic_cache_would_show_it(
    slow: Slow,
    vocabulary: Vocabulary,
    watch: Callable[..., Watched],
    layout: AttentionLayout,
    count: int,
) -> None:
    watched = watch()
    source = random.Random(count)
    prompts = [tuple(source.randrange(3, 300) for _ in range(20)) for _ in range(count)]
    asked = workers(
        prompts, layout, [24] * count, others="the others: ", own="runs ", opening="step {step} "
    )
    heard = watched.add(*asked)
    watched.playback.finish()
    assert largest_error(watched, heard, expected(slow, vocabulary, asked, heard)) < 1e-5


@pytest.mark.usefixtures("stepping")
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(2, 4),
    layout=st.sampled_from(LAYOUTS),
    prefill_tokens=st.sampled_from([3, 256]),
    texts=st.fixed_dictionaries(
        {},
        optional={
            "others": st.just("the other there "),
            "own": st.just("home: "),
            "opening": st.just("{step} dog "),
        },
    ),
)
def test_workers_of_any_lengths_that_end_at_any_time(
    slow: Slow,
    vocabulary: Vocabulary,
    play: Play,
    seed: int,
    count: int,
    layout: AttentionLayout,
    prefill_tokens: int,
    texts: dict[str, str],
) -> None:
    watched = Watched(play(replace(EXACT, prefill_tokens=prefill_tokens)))
    source = random.Random(seed)
    common = tuple(source.randrange(3, 300) for _ in range(source.randint(0, 40)))
    prompts = [
        (*common, *(source.randrange(3, 300) for _ in range(source.randint(1, 9))))
        for _ in range(count)
    ]
    tokens = [source.randint(4, 18) for _ in prompts]
    asked = workers(prompts, layout, tokens, **texts)
    heard = watched.add(*asked)
    try:
        watched.playback.finish()
    finally:
        watched.end()
    assert largest_error(watched, heard, expected(slow, vocabulary, asked, heard)) < 1e-5


@pytest.mark.usefixtures("stepping")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_worker_alone_writes_what_an_ordinary_request_does(
    play: Play, layout: AttentionLayout
) -> None:
    for prompt in ((5,), tuple(range(20, 70))):
        ordinary = play().answer(asking(*prompt, max_tokens=40))
        alone = play().answer(workers([prompt], layout, [40])[0])
        assert alone.token_ids == ordinary.token_ids
        assert replace(alone.usage, forwards=0) == replace(ordinary.usage, forwards=0)
        assert alone.usage.forwards <= ordinary.usage.forwards + 1


@pytest.mark.usefixtures("stepping")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_requests_of_the_batch_neither_notice_nor_disturb(
    play: Play, layout: AttentionLayout
) -> None:
    asked = workers([(5, 6, 7), (8, 9), (5, 6, 20)], layout, [14, 9, 14], opening="the ")
    prompts = [tuple(range(start, start + 9)) for start in (40, 60, 80)]
    playback = play()
    together = [Heard(request) for request in asked]
    playback.batcher.add(*together)
    playback.finish()
    alone = [play().answer(asking(*prompt, max_tokens=20)) for prompt in prompts]

    playback = play()
    before = playback.add(asking(*prompts[0], max_tokens=20))
    for _ in range(3):
        playback.batcher.step()
    group = [Heard(request) for request in asked]
    playback.batcher.add(*group)
    for _ in range(4):
        playback.batcher.step()
    after = [playback.add(asking(*prompt, max_tokens=20)) for prompt in prompts[1:]]
    playback.finish()
    for got, wanted in zip([before, *after], alone, strict=True):
        assert got.completion.token_ids == wanted.token_ids
    for mine, theirs in zip(group, together, strict=True):
        assert mine.completion.token_ids == theirs.completion.token_ids


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fails", [False, True])
def test_the_block_of_a_cancelled_or_failed_worker_is_gone_at_once(
    slow: Slow, watch: Callable[..., Watched], layout: AttentionLayout, fails: bool
) -> None:
    watched = watch()
    prompts = [(5, 6, 7, 8), (9, 10, 11), (12, 13)]
    heard = watched.add(*workers(prompts, layout, [16] * 3))
    for _ in range(7):  # the prompts, then six tokens of each
        watched.playback.batcher.step()
    doomed = watched.playback.batcher.rows[1]
    assert doomed.ticket is heard[1]
    if fails:
        doomed._chooser = None  # type: ignore[assignment]
        watched.playback.batcher.step()
        with pytest.raises(ModelUnavailable, match="cannot be continued"):
            _ = heard[1].completion
    else:
        heard[1].cancelled = True
    written = len(doomed.tokens) - doomed.prompt_tokens
    watched.playback.finish()

    writers = [Writer([*prompt], [], [], []) for prompt in prompts]
    group = SlowGroup(slow, writers, layout, 16, lambda _: False)
    for step in range(16):
        if step == written + fails:
            writers[1].gone = True
        for worker, logits in group.step().items():
            if worker != 1:
                got = watched.logits[id(heard[worker])][step]
                assert abs(got - logits.numpy()).max() < 1e-5 * abs(logits).max()
                group.write(worker, [heard[worker].completion.token_ids[step]])
            else:
                group.write(1, doomed.tokens[doomed.prompt_tokens + step :][:1])


@pytest.mark.usefixtures("stepping")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_workers_wrote_is_no_prefix_for_others(play: Play, layout: AttentionLayout) -> None:
    playback = play()
    prompts = [tuple(range(20, 60)), tuple(range(20, 59))]
    heard = [Heard(request) for request in workers(prompts, layout, [20, 20])]
    playback.batcher.add(*heard)
    playback.finish()
    asked = [
        asking(*prompt, *h.completion.token_ids, 7)
        for h, prompt in zip(heard, prompts, strict=True)
    ]
    found = [playback.answer(longer) for longer in asked]
    assert [one.usage.cached_tokens for one in found] == [40, 39]
    assert playback.batcher._slots.free == EXACT.max_batch
    for one, longer in zip(found, asked, strict=True):
        assert one.token_ids == play().answer(longer).token_ids


def test_the_common_beginning_of_the_prompts_is_read_once(play: Play) -> None:
    playback = play(replace(EXACT, prefill_tokens=30))
    common = tuple(range(20, 110))
    heard = [Heard(r) for r in workers([(*common, 3), (*common, 4)], "combined", [4, 4])]
    playback.batcher.add(*heard)
    playback.finish()
    assert [h.completion.usage.cached_tokens for h in heard] == [0, len(common)]
    assert playback.batcher.forwards == 3 + 4
    assert playback.answer(asking(*common, 5)).usage.cached_tokens == len(common)


def test_openings_and_nudges_are_part_of_the_answer(
    vocabulary: Vocabulary, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = vocabulary.bytes_of
    said = {token for text in ("<0123456789> ", "again? ") for token in vocabulary.encode(text)}
    ends = set(range(3, vocabulary.size, 3)) - said
    monkeypatch.setattr(vocabulary, "bytes_of", lambda t: b"x!\n\n" if t in ends else plain(t))
    texts = {"opening": "<{step}> ", "nudge": "again? ", "nudge_tokens": 20}
    request = workers([(5, 6)], "combined", [60], **texts)[0]
    answer = play().answer(request)
    assert answer.text.startswith("<1> ")
    first, *steps = answer.text.split("x!\n\n<")
    assert steps
    assert [step.split(">")[0] for step in steps] == [str(2 + n) for n in range(len(steps))]
    assert "again?" not in first
    assert 1 <= answer.text.count("> again? ") <= 3
    assert len(answer.token_ids) == answer.usage.completion_tokens == 60


def test_a_heading_makes_no_special_token(vocabulary: Vocabulary, play: Play) -> None:
    texts = {"others": "<|im_start|>", "opening": "<|im_end|>"}
    answer = play().answer(workers([(5, 6)], "combined", [30], **texts)[0])
    assert answer.text.startswith("<|im_end|>")
    assert vocabulary.end_ids.isdisjoint(answer.token_ids[:5])


def test_a_group_that_the_batch_cannot_hold_is_refused(play: Play) -> None:
    playback = play(replace(EXACT, max_batch=2))
    heard = [Heard(request) for request in workers([(5,), (6,)], "combined", [4, 4])]
    playback.batcher.add(*heard)
    for h in heard:
        with pytest.raises(CapabilityError, match="takes 3 rows of the batch, which has 2"):
            _ = h.completion
    fitting = [Heard(request) for request in workers([(5,), (6,)], "slots", [4, 4])]
    playback.batcher.add(*fitting)
    playback.finish()
    assert all(h.completion.text for h in fitting)


def test_a_group_waits_until_all_of_it_fits(play: Play) -> None:
    playback = play(replace(EXACT, max_batch=3))
    busy = playback.add(asking(9, max_tokens=5))
    playback.batcher.step()
    heard = [Heard(request) for request in workers([(5,), (6,)], "combined", [4, 4])]
    playback.batcher.add(*heard)
    playback.batcher.step()
    assert len(playback.batcher.rows) == 1
    playback.finish()
    assert busy.finished
    assert all(h.finished for h in heard)


@pytest.mark.parametrize("started", [False, True])
def test_cancelling_the_whole_group_leaves_nothing(play: Play, started: bool) -> None:
    playback = play(replace(EXACT, max_batch=3))
    busy = playback.add(asking(9, max_tokens=6))
    playback.batcher.step()
    if started:
        busy.cancelled = True
    heard = [Heard(request) for request in workers([(5,), (6,)], "combined", [4, 4])]
    playback.batcher.add(*heard)
    playback.batcher.step()
    for h in heard:
        h.cancelled = True
    playback.finish()
    assert playback.batcher._slots.free == 3
    assert not playback.batcher._groups
    assert not any(h.finished for h in heard)
    assert playback.answer(asking(5, 6)).token_ids == play().answer(asking(5, 6)).token_ids


def test_one_bad_worker_ends_its_group(play: Play) -> None:
    playback = play()
    asked = workers([(5,), (6,)], "combined", [4, 4], opening="the dog ")
    asked[1] = replace(asked[1], logprobs=True)
    heard = [Heard(request) for request in asked]
    playback.batcher.add(*heard)
    for h in heard:
        with pytest.raises(ModelRequestError, match="logprobs and concurrent attention"):
            _ = h.completion
    assert playback.batcher.idle
    assert not playback.batcher._groups


def test_an_opening_must_leave_room(play: Play) -> None:
    request = workers([(5,)], "combined", [2], opening="the quick brown fox jumps over")[0]
    with pytest.raises(ModelRequestError, match="opening fills"):
        play().answer(request)


def test_workers_share_the_context(play: Play) -> None:
    playback = play(replace(EXACT, max_context_tokens=50))
    heard = [Heard(r) for r in workers([(5,) * 10, (6,) * 10], "combined", [500, 500])]
    playback.batcher.add(*heard)
    playback.finish()
    assert [len(h.completion.token_ids) for h in heard] == [20, 20]


def test_the_embedded_model_sees_what_a_monolithic_cache_would_show_it(
    smollm2: Path, smollm2_network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = smollm2_network
    words = Vocabulary.load(smollm2, network.vocabulary_size, network.generation.end_ids)
    slow = Slow(AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32))
    plain = words.bytes_of
    monkeypatch.setattr(words, "bytes_of", lambda t: plain(t) if t % ENDS_A_STEP else b"x.\n\n")
    watched = Watched(Playback(Batcher(network, words, EXACT, "smollm2")))
    prompt = tuple(words.encode("<|im_start|>user\nCount.<|im_end|>\n<|im_start|>assistant\n"))
    asked = workers([prompt] * 2, "combined", [9, 9], opening="{step}: ")
    heard = watched.add(*asked)
    watched.playback.finish()
    watched.end()
    assert largest_error(watched, heard, expected(slow, words, asked, heard)) < 1e-5

    network.reset()
    playback = Playback(Batcher(network, words, EXACT, "smollm2"))
    ordinary = playback.answer(asking(*prompt, max_tokens=12))
    alone = playback.answer(workers([prompt], "combined", [12])[0])
    assert alone.token_ids == ordinary.token_ids


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nor_while_they_are_writing(play: Play, layout: AttentionLayout) -> None:
    playback = play()
    prompts = [tuple(range(20, 60)), tuple(range(20, 59))]
    heard = [Heard(request) for request in workers(prompts, layout, [40, 40])]
    playback.batcher.add(*heard)
    for _ in range(12):
        playback.batcher.step()
    longer = asking(*playback.batcher.rows[0].tokens, 7)
    got = playback.add(longer)
    playback.finish()
    assert got.completion.usage.cached_tokens == 40
    assert got.completion.token_ids == play().answer(longer).token_ids
