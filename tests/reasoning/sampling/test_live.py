"""Sampling as a strategy, over a scripted model in virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.reasoning.scripted_strategy import Told, told
from weft.core.errors import BuildError, ModelRequestError
from weft.core.ports import Capabilities, ModelEvent, ModelRequest, TextDelta
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.strategies import make_strategy
from weft.reasoning.thought import Sample, Thought
from weft.testing import FakeModel, Reply, TokenModel, TokenReply

PLAIN = Capabilities()


def saying(*answers: str | Reply, per_token_s: float = 1.0) -> FakeModel:
    """A model whose samples, in the order of their start, say so; a token is a word."""
    replies = [a if isinstance(a, Reply) else Reply(a, per_token_s=per_token_s) for a in answers]
    return FakeModel(replies, capabilities=PLAIN)


def long(answer: str, words: int) -> str:
    """An answer at the end of `words` words."""
    return "so " * (words - 2) + f"Answer: {answer}"


def sampled(model: Any, run: Any = None, **settings: Any) -> Told:
    names = {"width": 4, "max_tokens": 100, "budget": None}
    options = {name: settings.pop(name, default) for name, default in names.items()}
    return told("sample", model, settings=settings, run=run, **options)


def statuses(thought: Thought) -> list[str]:
    return [sample.status for sample in thought.samples]


def test_the_majority_wins_and_what_cannot_change_it_is_cancelled() -> None:
    model = saying(long("7", 3), long("8", 9), long("7.0", 4), long("7", 10), long("9", 90))
    done = sampled(model, width=5)
    thought = done.thought
    assert (thought.answer, thought.key) == ("7", "7")
    assert statuses(thought) == ["finished"] * 4 + ["cancelled"]
    assert model.cancelled == 1
    assert 9 <= thought.samples[4].tokens <= 11
    assert model.running == 0
    assert "could not win" in thought.why
    assert "votes for '7'" in thought.why
    assert thought.counts.total_tokens == sum(sample.tokens for sample in thought.samples)
    assert thought.counts.critical_path_tokens == max(s.tokens for s in thought.samples)
    assert thought.counts.cancelled_tokens == sum(
        sample.tokens for sample in thought.samples if sample.status == "cancelled"
    )
    assert thought.counts.requests == 5


def test_without_cancelling_all_samples_end() -> None:
    model = saying(long("7", 3), long("7", 4), long("7", 50))
    thought = sampled(model, width=3, cancel_decided=False).thought
    assert statuses(thought) == ["finished"] * 3
    assert thought.why == "all 3 samples have ended; 3 of 3 votes for '7'"


def test_samples_have_seeds_of_their_own_and_the_same_prompt() -> None:
    model = saying("Answer: 1")
    sampled(model, width=4, cancel_decided=False)
    assert len({request.sampling.seed for request in model.requests}) == 4
    assert len({request.messages for request in model.requests}) == 1
    assert "Answer: " in model.requests[0].messages[-1].content


def test_no_more_than_the_width_run_side_by_side() -> None:
    model = saying(*[long("1", 10)] * 6)
    thought = sampled(model, width=2, samples=6, cancel_decided=False).thought
    assert statuses(thought) == ["finished"] * 6
    assert thought.counts.total_tokens == 60


def test_what_waits_for_its_turn_is_never_started_once_the_vote_is_decided() -> None:
    model = saying(*[long("1", 10)] * 6)
    thought = sampled(model, width=2, samples=6).thought
    assert thought.counts.requests == 4
    assert statuses(thought).count("cancelled") == 2
    assert thought.key == "1"


def test_adaptive_waves_are_one_fork_each() -> None:
    model = saying(*[long("5", 10)] * 8)
    thought = sampled(model, width=4, samples=8, sampler="asc", wave=2).thought
    assert len(thought.samples) == 4
    assert thought.tree is not None
    assert [len(fork.children) for fork in thought.tree.forks] == [2, 2]
    assert thought.counts.critical_path_tokens == 20
    assert thought.why.startswith("4 to 0 after 4 samples")


def test_windows_and_short_at_work() -> None:
    window = sampled(saying(*[long("5", 10)] * 8), sampler="esc", samples=8, wave=3).thought
    assert len(window.samples) == 3
    model = saying(long("1", 30), long("2", 10), long("2", 12), long("1", 40))
    short = sampled(model, sampler="short", first=2).thought
    assert short.key == "2"
    assert statuses(short) == ["cancelled", "finished", "finished", "cancelled"]


def test_saturation_explains_itself() -> None:
    thought = sampled(saying("Answer: 3"), sampler="saturating", samples=20, width=4).thought
    assert "one more gains" in thought.why


@pytest.mark.parametrize("selector", ["majority", "first-seen", "smv"])
def test_votes_choose(selector: str) -> None:
    model = saying(long("2", 30), long("1", 20), long("1", 10))
    thought = sampled(model, width=3, selector=selector).thought
    assert thought.key == "1"
    assert thought.answer == "1"


def test_answers_that_cannot_be_compared_still_leave_an_answer() -> None:
    prose = "There is much to be said about this and nothing to be counted in votes. " * 6
    thought = sampled(saying(prose, prose + " Nothing."), width=2).thought
    assert thought.key is None
    assert thought.answer == prose.strip()
    assert thought.why.endswith("no sample has an answer that can be compared")


def test_a_sample_that_fails_takes_no_part() -> None:
    broken = Reply(error=ModelRequestError("no"))
    thought = sampled(saying(broken, "Answer: 4", "Answer: 4"), width=3).thought
    assert statuses(thought) == ["failed", "finished", "finished"]
    assert thought.key == "4"


def test_when_all_fail_the_reason_is_told() -> None:
    done = sampled(saying(Reply(error=ModelRequestError("the server says no"))), width=2)
    assert "all samples failed" in done.error
    assert "the server says no" in done.error


def test_what_is_cut_off_votes_only_with_a_marked_answer() -> None:
    model = saying(long("4", 50), "Answer: 4 and " + "so " * 50, "it is 9")
    thought = sampled(model, width=3, max_tokens=20, cancel_decided=False).thought
    assert statuses(thought) == ["length", "length", "finished"]
    assert [sample.key for sample in thought.samples][::2] == [None, "9"]


def test_answers_that_contradict_one_another_are_not_one_vote() -> None:
    yes, no = "Yes, 17 is a prime number.", "No, 17 is not a prime number."
    thought = sampled(saying(yes, no, no), width=3, cancel_decided=False).thought
    assert thought.answer == no
    assert thought.key == "no, 17 is not a prime number"
    assert thought.samples[0].key == "yes, 17 is a prime number"
    assert "2 of 3 votes for 'no, 17 is not a prime number'" in thought.why


def test_a_list_is_not_its_last_number() -> None:
    one, other = "1. red\n2. green\n3. blue", "1. cat\n2. dog\n3. cow"
    thought = sampled(saying(one, other, other), width=3, cancel_decided=False).thought
    assert thought.answer == other
    assert len({sample.key for sample in thought.samples}) == 2


@pytest.mark.parametrize("budget", [1, 7, 30, 55, 100])
def test_the_budget_is_never_exceeded(budget: int) -> None:
    model = saying(*[long("1", 20)] * 8)
    done = sampled(model, width=8, max_tokens=20, budget=budget, cancel_decided=False)
    thought = done.thought
    assert thought.counts.total_tokens <= budget
    assert sum(s.status == "finished" for s in thought.samples) == budget // 20


def test_a_budget_that_is_spent_ends_the_waves() -> None:
    model = saying(*[long(str(n), 20) for n in range(40)])
    thought = sampled(model, sampler="asc", width=4, wave=4, max_tokens=20, budget=124).thought
    assert thought.why.startswith("the budget is spent")
    assert thought.counts.requests == 6
    assert statuses(thought)[-2:] == ["cancelled", "cancelled"]


def test_a_tight_budget_lets_samples_run_one_after_the_other() -> None:
    model = saying(*[long("1", 10)] * 4)
    thought = sampled(model, width=4, max_tokens=20, budget=50, cancel_decided=False).thought
    assert statuses(thought) == ["finished"] * 4
    assert thought.counts.total_tokens == 40


def test_a_long_prompt_is_computed_once_before_its_siblings_need_it() -> None:
    model = saying(Reply(long("1", 10), first_token_s=5.0, per_token_s=1.0))
    done = told(
        "sample",
        model,
        Question("Is it? " * 400),
        width=3,
        max_tokens=100,
        settings={"cancel_decided": False},
    )
    assert done.started_s("samples/0") == 0
    assert done.started_s("samples/1") == done.started_s("samples/2") == 5.0


def test_a_schema_is_asked_for_and_compared_as_a_value() -> None:
    model = FakeModel(
        ['{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '{"a": 2}'],
        capabilities=Capabilities(structured_output=True),
    )
    question = Question("What?", schema={"type": "object"})
    thought = told("sample", model, question, width=3).thought
    assert thought.key == '{"a": 1, "b": 2}'
    assert model.requests[0].schema == {"type": "object"}
    assert "Answer: " not in model.requests[0].messages[-1].content


@pytest.mark.parametrize(
    ("strategy", "settings"),
    [("backtrack", {"stable": 1}), ("sample", {"selector": "synthesis"}), ("direct", {})],
)
def test_every_way_ends_in_an_answer_that_fits_a_schema(
    strategy: str, settings: dict[str, Any]
) -> None:
    model = FakeModel(['{"a": 1}'], capabilities=Capabilities(structured_output=True))
    question = Question("What?", schema={"type": "object"})
    thought = told(strategy, model, question, settings=settings, width=2).thought
    assert (thought.answer, thought.key) == ('{"a": 1}', '{"a": 1}')
    assert all(request.schema == {"type": "object"} for request in model.requests)
    assert not any("Answer: " in str(request.messages) for request in model.requests[:2])


# -- confidence -------------------------------------------------------------------------------


class Sure:
    """A model that tells log probabilities: each sample is as sure of each token as it is told."""

    model = "sure"

    def __init__(self, samples: Sequence[tuple[str, Sequence[float]]], top: int = 2) -> None:
        self._samples = samples
        self._top = top
        self._inner = FakeModel(
            [Reply(text, per_token_s=1.0) for text, _ in samples],
            capabilities=Capabilities(logprobs=True, top_logprobs=top),
        )
        self.requests = self._inner.requests

    async def capabilities(self) -> Capabilities:
        return await self._inner.capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        place = len(self._inner.requests)
        known = iter(self._samples[place][1])
        async for event in self._inner.generate(request):
            if isinstance(event, TextDelta):
                value = next(known)
                top = ((0.0, -2 * value),) if self._top else ()
                yield replace(event, logprobs=(-1 / (1 + value),), top_logprobs=top)
            else:
                yield event

    async def aclose(self) -> None:
        await self._inner.aclose()


def test_deepconf_kills_the_unsure_and_weighs_by_confidence() -> None:
    sure, unsure = [5.0] * 40, [5.0] * 4 + [1.0] * 40
    model = Sure(
        [
            (long("1", 10), sure),
            (long("2", 10), [4.0] * 40),
            (long("2", 10), [6.0] * 40),
            (long("2", 30), unsure),
        ]
    )
    done = sampled(model, sampler="deepconf", width=4, warmup=3, keep=50.0, window=4)
    thought = done.thought
    assert statuses(thought) == ["finished", "finished", "finished", "cancelled"]
    assert thought.samples[3].tokens < 10
    assert thought.key == "2"
    assert thought.fidelity == "exact"
    assert model.requests[0].top_logprobs == 2
    assert "2 of 4 samples cleared the bar of 5.000" in thought.why


def test_without_a_readable_answer_deepconf_gives_the_shortest_text_as_others_do() -> None:
    texts = ["we are not so sure of it", "nobody knows", "it is hard to say"]

    def sure() -> Sure:
        return Sure([(text, [5.0] * 40) for text in texts])

    settings: dict[str, Any] = {"width": 3, "answer": lambda text, whole=True: None}
    done = sampled(sure(), sampler="deepconf", warmup=3, window=4, **settings)
    assert (done.thought.answer, done.thought.key) == ("nobody knows", None)
    assert "0 of 3 samples cleared the bar of 5.000 and can vote" in done.thought.why
    assert done.thought.answer == sampled(sure(), **settings).thought.answer


def test_the_probability_of_the_sampled_token_is_a_labelled_stand_in() -> None:
    model = Sure([(long("1", 10), [5.0] * 10), (long("2", 10), [4.0] * 10)], top=0)
    thought = sampled(model, selector="confidence", width=2, window=4).thought
    assert thought.key == "1"
    assert thought.fidelity == "approximate"
    assert "sampled token" in thought.lost
    assert model.requests[0].logprobs
    assert model.requests[0].top_logprobs == 0


def test_the_most_confident_part_votes() -> None:
    model = Sure([(long("1", 9), [2.0] * 9), (long("1", 9), [2.0] * 9), (long("2", 9), [9.0] * 9)])
    thought = sampled(model, selector="confidence", width=3, top=0.3, measure="lowest").thought
    assert thought.key == "2"
    assert [sample.confidence for sample in thought.samples] == [2.0, 2.0, 9.0]


def test_a_server_without_log_probabilities_is_told_apart() -> None:
    assert "tells no log probabilities" in sampled(saying("Answer: 1"), sampler="deepconf").error


# -- probes -----------------------------------------------------------------------------------


def probed(sample: str) -> TokenModel:
    """A model by token ids; asked for its final answer, it says 7 and nothing else."""

    def script(prompt: tuple[int, ...], _: ModelRequest) -> TokenReply:
        asked = "".join(chr(number) for number in prompt[-30:] if number < 0x110000)
        return TokenReply("7}. More" if asked.endswith("\\boxed{") else sample)

    return TokenModel(script, per_token_s=1.0)


def test_probes_settle_the_vote_without_touching_the_samples() -> None:
    model = probed("thinking " * 100)
    settings = {"every": 20, "warmup": 1, "stable": 3, "patience": 2}
    done = sampled(model, sampler="probe", width=3, max_tokens=900, **settings)
    thought = done.thought
    assert thought.key == thought.answer == "7"
    assert statuses(thought) == ["cancelled"] * 3
    assert "the majority is the same for 3 rounds of 20 tokens" in thought.why
    assert all(sample.text == ("thinking " * 100)[: len(sample.text)] for sample in thought.samples)
    counts = thought.counts
    assert counts.critical_path_tokens == max(sample.tokens for sample in thought.samples)
    assert counts.total_tokens > sum(sample.tokens for sample in thought.samples)
    samples = [r for r in model.requests if r.sampling.max_tokens != 24]
    probes = [r for r in model.requests if r.sampling.max_tokens == 24]
    assert len(samples) == 3
    assert len(probes) >= 3 * 4
    prompt = samples[0].prompt_token_ids
    assert all(r.prompt_token_ids[: len(prompt)] == prompt for r in probes)
    assert all(r.sampling.temperature == 0 for r in probes)


def test_probes_need_a_model_that_can_go_on() -> None:
    assert "cannot go on" in sampled(saying("Answer: 1"), sampler="probe").error


# -- settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sampler": "ascc"}, "did you mean 'asc'?"),
        ({"selector": "majorty"}, "did you mean 'majority'?"),
        ({"sampler": "asc", "threshold": 0.1}, "threshold must be"),
        ({"samples": -1}, "must not be negative"),
        ({"measure": "mean"}, "there are: tail"),
        ({"answer": "numbr"}, "did you mean 'number'?"),
        ({"nothing": 1}, "no setting 'nothing'"),
        ({"selector": "smv", "cancel_decided": True}, "needs the selector majority"),
        ({"selector": "best", "scorer": 3}, "is no scorer"),
        ({"selector": "confidence", "top": 0.0}, "top is a share"),
    ],
)
def test_settings_are_checked_before_anything_runs(settings: dict[str, Any], words: str) -> None:
    model = saying("Answer: 1")
    with pytest.raises(BuildError) as caught:
        make_strategy("sample", model, ThinkOptions(settings=settings))
    assert words in str(caught.value)
    assert not model.requests


# -- best-of, direct, backtrack ---------------------------------------------------------------


def shorter(_: Question, sample: Sample) -> float:
    return -float(sample.tokens)


def test_best_of_takes_the_highest_score() -> None:
    model = saying(long("1", 20), long("2", 10), long("1", 30))
    done = told("best-of", model, settings={"scorer": shorter}, width=3, max_tokens=100)
    thought = done.thought
    assert thought.key == "2"
    assert [sample.score for sample in thought.samples] == [-20.0, -10.0, -30.0]
    assert "the highest of 3 scores" in thought.why


def test_direct_asks_once() -> None:
    model = saying("It is 42.")
    thought = told("direct", model).thought
    assert (thought.answer, thought.key) == ("It is 42.", "42")
    assert model.requests[0].messages[-1].content == "What is it?"
    assert thought.counts.requests == 1


def test_backtrack_checks_until_the_answer_is_settled() -> None:
    model = saying("Answer: 1", "Answer: 2", "Answer: 2", "Answer: 2", "Answer: 3")
    thought = told("backtrack", model, settings={"stable": 2}).thought
    assert thought.key == "2"
    assert thought.counts.requests == 4
    assert thought.why == "the answer stayed the same for 2 checks"
    roles = [message.role for message in model.requests[-1].messages]
    assert roles[-2:] == ["assistant", "user"]


def test_backtrack_spends_its_budget_and_no_more() -> None:
    model = saying(*[long(str(n), 20) for n in range(20)])
    thought = told(
        "backtrack", model, budget=110, max_tokens=30, rounds=20, settings={"stable": 0}
    ).thought
    assert thought.why == "the budget is spent"
    assert 80 <= thought.counts.total_tokens <= 110


def test_backtrack_stops_when_verified() -> None:
    def right(_: Question, text: str) -> bool:
        return text.endswith("5")

    model = saying("Answer: 4", "Answer: 5", "Answer: 6")
    thought = told("backtrack", model, settings={"verify": right}).thought
    assert thought.key == "5"
    assert thought.why == "verified in round 2"


def test_backtrack_goes_on_in_one_context_where_it_can() -> None:
    model = TokenModel(lambda _, __: TokenReply("Answer: 7"), per_token_s=1.0)
    thought = told("backtrack", model, settings={"stable": 1}).thought
    assert thought.key == "7"
    first, second = model.requests
    grown = second.prompt_token_ids
    assert grown[: len(first.prompt_token_ids)] == first.prompt_token_ids
    assert "Wait. Let me check" in "".join(chr(n) for n in grown if n < 0x110000)


def test_chains_and_rounds_are_split_by_what_they_promise() -> None:
    model = saying("Answer: 7")
    done = told(
        "backtrack",
        model,
        width=4,
        max_tokens=50,
        budget=400,
        rounds=4,
        settings={"chains": 0, "p": 0.2, "q": 0.05},
    )
    assert "4 chains of" in done.thought.why
    assert done.thought.key == "7"
