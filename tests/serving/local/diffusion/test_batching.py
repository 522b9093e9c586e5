"""Rows of a diffusion model in one batch: join, leave, fail and stream, each as if alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.serving.local.diffusion.conftest import Playing
from tests.serving.local.playback import EXACT, Heard, asking
from weft.core.errors import CapabilityError, ModelRequestError, ModelUnavailable
from weft.core.ports import ConcurrentAttention, ModelRequest, Placed, Prefilled, TextDelta
from weft.core.values import Completion, DecodeSpec, Lossless, Lossy
from weft.decoding.diffusion import catalogue
from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.ports import Refusal
from weft.decoding.diffusion.preset import DiffusionPreset

FAST = Lossy("threshold", (("threshold", 0.05), ("block", 8)))
PLAIN = Lossless("sequential", (("block", 8),))
PROMPTS = ((5, 6, 7), (40, 41), tuple(range(50, 75)), (9,), (100, 101, 102, 103, 104))


def fast(*prompt: int, decode: DecodeSpec = FAST, **fields: Any) -> ModelRequest:
    return replace(asking(*prompt, **{"max_tokens": 20, **fields}), decode=decode)


def facts(answer: Completion) -> tuple[object, ...]:
    return answer.text, answer.token_ids, answer.finish_reason, answer.usage, answer.denoised


def deltas(heard: Heard) -> list[TextDelta]:
    return [event for event in heard.events if isinstance(event, TextDelta)]


def test_an_answer_tells_what_it_took(play: Playing) -> None:
    heard = play().add_and_finish(fast(*PROMPTS[0]))
    answer = heard.completion
    told = answer.denoised
    assert isinstance(heard.events[0], Prefilled)
    assert heard.events[0].prompt_token_ids == PROMPTS[0]
    assert told is not None
    assert (told.method, told.lossless) == ("threshold", False)
    assert (told.kept, answer.finish_reason) == (20, "length")
    assert answer.usage.completion_tokens == len(answer.token_ids) == 20
    assert answer.usage.forwards == told.forwards == sum(count for _, count in told.by_kind)
    assert told.forwards < 20
    assert told.tokens_per_forward == pytest.approx(20 / told.forwards)


def test_plain_decoding_is_one_token_a_forward_and_what_is_not_named(play: Playing) -> None:
    named = play().answer(fast(*PROMPTS[0], decode=Lossless("sequential")))
    plain = play().answer(asking(*PROMPTS[0], max_tokens=20))
    assert facts(plain) == facts(named)
    assert plain.denoised is not None
    assert plain.denoised.lossless
    kinds = dict(plain.denoised.by_kind)
    assert kinds.pop("denoise", 0) + kinds.pop("whole", 0) == 20
    assert set(kinds) <= {"persist"}


@pytest.mark.parametrize("max_batch", [1, 3, 16])
def test_concurrent_answers_equal_lone_ones(play: Playing, max_batch: int) -> None:
    lone = [play().answer(request) for request in requests()]
    playback = play(replace(EXACT, max_batch=max_batch))
    heard = [playback.add(request) for request in requests()]
    playback.finish()
    assert [facts(each.completion) for each in heard] == [facts(answer) for answer in lone]


def requests() -> list[ModelRequest]:
    """Greedy and drawn ones, long and short, by different decoders."""
    drawn = [fast(*prompt, temperature=1.0, seed=n) for n, prompt in enumerate(PROMPTS)]
    short = [fast(*prompt, max_tokens=3 + 5 * n) for n, prompt in enumerate(PROMPTS)]
    return [*drawn, *short, fast(*PROMPTS[1], decode=PLAIN)]


def test_rows_join_between_steps_and_leave_one_by_one(play: Playing) -> None:
    playback = play()
    first = playback.add(fast(*PROMPTS[0], decode=PLAIN, max_tokens=16))
    for _ in range(5):
        playback.batcher.step()
    second = playback.add(fast(*PROMPTS[1], decode=PLAIN, max_tokens=2))
    playback.batcher.step()
    assert len(playback.batcher.rows) == 2
    while not second.finished:
        playback.batcher.step()
    assert not first.finished
    assert len(playback.batcher.rows) == 1
    playback.finish()
    assert facts(first.completion) == facts(
        play().answer(fast(*PROMPTS[0], decode=PLAIN, max_tokens=16))
    )


def test_no_more_rows_run_than_there_is_room_for_and_the_urgent_come_first(play: Playing) -> None:
    playback = play(replace(EXACT, max_batch=2))
    heard = [playback.add(replace(fast(*PROMPTS[0]), priority=n)) for n in range(5)]
    ended: list[int] = []
    while not playback.batcher.idle:
        playback.batcher.step()
        assert len(playback.batcher.rows) <= 2
        ended += [n for n, each in enumerate(heard) if each.finished and n not in ended]
    assert ended == sorted(ended, key=lambda n: -((n + 1) // 2 * 2))
    small = play(replace(EXACT, cache_tokens=60))
    for _ in range(3):
        small.add(fast(*PROMPTS[0]))
    small.batcher.step()
    assert len(small.batcher.rows) == 2  # 2 * (3 + 20) tokens fit, not three times as many


def test_a_cancelled_row_is_gone_at_the_next_step_in_the_middle_of_a_block(play: Playing) -> None:
    playback = play(replace(EXACT, max_batch=1))
    heard = playback.add(fast(*PROMPTS[0], decode=PLAIN))
    other = playback.add(fast(*PROMPTS[1]))
    dropped = playback.add(fast(*PROMPTS[2]))
    for _ in range(3):
        playback.batcher.step()
    heard.cancelled = dropped.cancelled = True
    playback.batcher.step()
    assert [row.ticket for row in playback.batcher.rows] == [other]  # type: ignore[attr-defined]
    playback.finish()
    assert not heard.finished
    assert dropped.events == []
    assert facts(other.completion) == facts(play().answer(fast(*PROMPTS[1])))


def test_text_is_released_by_blocks_and_adds_up_to_the_answer(play: Playing) -> None:
    heard = play().add_and_finish(fast(*PROMPTS[0], max_tokens=40))
    pieces = deltas(heard)
    assert 3 <= len(pieces) <= 7  # blocks of 8, the first of which begins with the prompt perhaps
    assert "".join(piece.text for piece in pieces) == heard.completion.text
    assert sum((piece.token_ids for piece in pieces), ()) == heard.completion.token_ids


def test_max_tokens_is_a_ceiling_that_the_canvas_grows_to(play: Playing) -> None:
    for most in (1, 7, 64, 65, 100):
        answer = play(replace(EXACT, canvas_tokens=16)).answer(fast(*PROMPTS[0], max_tokens=most))
        assert (answer.usage.completion_tokens, answer.finish_reason) == (most, "length")


def whole_answer(play: Playing) -> Completion:
    return play().answer(fast(*PROMPTS[0]))


def test_a_stop_text_ends_the_answer_before_it(play: Playing) -> None:
    whole = whole_answer(play)
    stop = whole.text[6:8]
    heard = play().add_and_finish(fast(*PROMPTS[0], stop=("never met", stop)))
    cut = heard.completion
    assert (cut.finish_reason, cut.stop) == ("stop", stop)
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]
    assert cut.usage.completion_tokens == len(cut.token_ids)
    assert "".join(piece.text for piece in deltas(heard)) == cut.text
    assert cut.denoised is not None
    assert cut.denoised.discarded >= 0


def test_a_stop_token_ends_the_answer_and_is_its_last_id(play: Playing) -> None:
    whole = play().answer(fast(*PROMPTS[0], decode=PLAIN))
    stop = whole.token_ids[4]
    place = whole.token_ids.index(stop)
    cut = play().answer(fast(*PROMPTS[0], decode=PLAIN, stop_token_ids=(stop,)))
    assert (cut.finish_reason, cut.stop) == ("stop", stop)
    assert cut.token_ids == whole.token_ids[: place + 1]
    assert cut.usage.completion_tokens == place


def test_the_models_own_end_is_neither_shown_nor_counted(play: Playing, masked: Any) -> None:
    whole = play().answer(fast(*PROMPTS[0], decode=PLAIN))
    end = whole.token_ids[3]
    place = whole.token_ids.index(end)
    ended = replace(masked, traits=replace(masked.traits, end_ids=frozenset({end})))
    cut = play(model=ended).answer(fast(*PROMPTS[0], decode=PLAIN, extra={}))
    assert (cut.finish_reason, cut.stop) == ("stop", None)
    assert cut.token_ids == whole.token_ids[:place]
    assert cut.usage.completion_tokens == place


def test_a_seed_makes_a_drawn_answer_repeat(play: Playing) -> None:
    playback = play()
    texts = [
        playback.answer(fast(*PROMPTS[0], temperature=1.0, seed=seed)).text for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 1}, "logprobs"),
        ({"placement": (Placed(2, 0), Placed(1, 5))}, "placement"),
        ({"attention": ConcurrentAttention("g", 2, 0)}, "attention"),
        ({"decode": Lossy("no such decoder")}, "no diffusion decoder"),
        ({"decode": Lossless("lookup")}, "writes? on"),
        ({"decode": Lossless("threshold")}, "may change the text"),
        ({"decode": Lossy("threshold", (("nope", 1),))}, "no option 'nope'"),
        ({"decode": Lossy("threshold", (("threshold", 7),))}, "threshold must be"),
    ],
)
def test_what_makes_no_sense_is_refused(play: Playing, fields: dict[str, Any], said: str) -> None:
    request = replace(asking(*PROMPTS[0]), **fields)
    with pytest.raises(CapabilityError, match=said):
        play().answer(request)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (asking(5, temperature=-1.0), "temperature"),
        (asking(5, extra={"frequency_penalty": 1}), "frequency_penalty"),
        (asking(*[5] * 1024), "must fit"),
        (asking(5, 10**6), "vocabulary"),
    ],
)
def test_what_cannot_be_is_refused(play: Playing, request_: ModelRequest, said: str) -> None:
    with pytest.raises(ModelRequestError, match=said):
        play().answer(request_)


@dataclass(frozen=True)
class Minding:
    """A guard that minds everything from its `allowed`-th review on, or raises there."""

    allowed: int
    raises: bool = False

    def begin(self, _canvas: object, _traits: object) -> Reviewing:
        return Reviewing(self)


class Reviewing:
    def __init__(self, settings: Minding) -> None:
        self._settings = settings
        self._left = settings.allowed

    def review(self, _canvas: object, _end: int) -> Refusal | None:
        self._left -= 1
        if self._left >= 0:
            return None
        if self._settings.raises:
            raise TimeoutError("of the moderator")
        return Refusal("minded")


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_what_a_guard_minds_is_never_shown(play: Playing, allowed: int) -> None:
    lone = play().add_and_finish(fast(*PROMPTS[0], max_tokens=40))
    playback = play(replace(EXACT, guards=(Minding(allowed),)))
    heard = playback.add_and_finish(fast(*PROMPTS[0], max_tokens=40))
    answer, shown = heard.completion, "".join(piece.text for piece in deltas(lone)[:allowed])
    assert (answer.finish_reason, answer.text) == ("refused", shown)
    assert "".join(piece.text for piece in deltas(heard)) == shown
    assert answer.denoised is not None
    assert answer.denoised.discarded > 0
    assert playback.batcher.idle


def test_a_guard_that_raises_shows_nothing_and_costs_its_own_request_only(play: Playing) -> None:
    heard = play(replace(EXACT, guards=(Minding(1, raises=True),))).add_and_finish(
        fast(*PROMPTS[0], max_tokens=40)
    )
    with pytest.raises(ModelUnavailable, match="of the moderator"):
        _ = heard.completion
    assert len(deltas(heard)) == 1


class Judge:
    """Objects to a text that holds `word`."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.read: list[str] = []

    def objection(self, text: str) -> str | None:
        self.read.append(text)
        return "forbidden" if self.word in text else None


def test_prompt_and_answer_are_moderated_as_one_text(play: Playing) -> None:
    lone = play().add_and_finish(fast(*PROMPTS[0], max_tokens=40))
    pieces = [piece.text for piece in deltas(lone)]
    word = pieces[1][:4]
    assert word not in pieces[0]
    judge = Judge(word)
    answer = play(replace(EXACT, moderator=judge)).answer(fast(*PROMPTS[0], max_tokens=40))
    assert (answer.finish_reason, answer.text) == ("refused", pieces[0])
    assert answer.refusal == "forbidden"
    assert len(judge.read) == 2
    assert judge.read[1].startswith(judge.read[0])
    assert not judge.read[0].startswith(pieces[0])  # the prompt stands before it


def test_a_mask_in_a_prompt_of_ids_is_refused(play: Playing, masked: Any) -> None:
    with pytest.raises(ModelRequestError, match="text of the prompt holds control tokens"):
        play().answer(fast(5, masked.traits.mask_id, 6))


@dataclass(frozen=True)
class Failing:
    """A policy that raises in its third step."""

    needs: frozenset[str] = frozenset()

    def begin(self, _canvas: object, _traits: object) -> Failing:
        return self

    def most_forwards(self, slots: int) -> int:
        return slots

    def propose(self, _stats: object, _drawn: object, canvas: Any) -> Action:
        if canvas.step == 2:
            raise ZeroDivisionError("of the policy")
        return Action()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> DecodeSpec:
    from weft.serving.local.diffusion import decoders

    usual = catalogue.preset("threshold")
    broken = DiffusionPreset(
        "random", "", lambda *given: replace(usual.make(*given), commit=Failing())
    )
    monkeypatch.setattr(
        decoders, "decoder_config", lambda name, *given: pick(name, broken, usual).make(*given)
    )
    return Lossy("random")


def pick(name: str, broken: DiffusionPreset, usual: DiffusionPreset) -> DiffusionPreset:
    return broken if name == broken.name else usual


def test_a_policy_that_raises_costs_its_own_request_only(
    play: Playing, failing: DecodeSpec
) -> None:
    lone = play().answer(fast(*PROMPTS[1]))
    playback = play()
    broken = playback.add(fast(*PROMPTS[0], decode=failing))
    other = playback.add(fast(*PROMPTS[1]))
    playback.finish()
    with pytest.raises(ModelUnavailable, match="ZeroDivisionError: of the policy"):
        _ = broken.completion
    assert facts(other.completion) == facts(lone)
    assert facts(playback.answer(fast(*PROMPTS[1]))) == facts(lone)


def test_what_the_model_raises_ends_all_that_run_and_the_next_are_served(
    play: Playing,
) -> None:
    lone = play().answer(fast(*PROMPTS[1]))
    playback = play()
    heard = [playback.add(fast(*prompt)) for prompt in PROMPTS]
    playback.batcher.step()
    gone = ModelUnavailable("gone")
    playback.batcher.abort(gone)
    assert playback.batcher.idle
    assert all(each.events[-1] is gone for each in heard)
    assert facts(playback.answer(fast(*PROMPTS[1]))) == facts(lone)
