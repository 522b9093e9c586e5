"""Parallel-R1: the model opens blocks, the runtime fills them with paths of distinct seeds."""

from __future__ import annotations

import pytest

from tests.reasoning.protocols.protocol_trace import assert_golden, model_of, thought_of
from weft.reasoning.protocols.parallel_r1 import ParallelR1

TAGS = ParallelR1.tags
ANSWERS = {
    "<|assistant|>": "Two ways. <Parallel>never read",
    "<Parallel><Path>": "12 * 11 = 132</Path>",
    "<Summary>": "Both say 132.</Summary>\nAnswer: 132",
}


@pytest.mark.parametrize("mode", ["tags", "prompted", "unseen"])
def test_the_trace_is_golden(mode: str) -> None:
    model = model_of(ANSWERS, () if mode == "prompted" else TAGS, placement=mode == "unseen")
    settings = {"variant": "unseen"} if mode == "unseen" else {}
    thought = thought_of("parallel-r1", model, settings=settings)
    assert thought.answer == "Answer: 132"
    assert_golden(f"parallel-r1-{mode}", model, thought)


def test_paths_have_distinct_seeds_that_stay_the_same() -> None:
    seeds = []
    for _ in range(2):
        model = model_of(ANSWERS, TAGS)
        thought_of("parallel-r1", model, settings={"paths": 3})
        seeds.append([request.sampling.seed for request in model.requests])
    assert len(set(seeds[0])) == 5
    assert seeds[0] == seeds[1]


def test_after_so_many_blocks_it_pauses_no_more() -> None:
    def answers(text: str) -> str:
        if text.endswith("<Path>"):
            return "x</Path>"
        return "again <Parallel>" if "again" in text else "first again <Parallel>"

    model = model_of(answers, TAGS)
    thought = thought_of("parallel-r1", model, settings={"blocks": 2})
    assert thought.counts.forks == 2
    assert model.requests[-1].sampling.stop_token_ids == ()


def test_the_unseen_variant_says_what_it_lost_on_a_plain_server() -> None:
    model = model_of(ANSWERS, TAGS)
    thought = thought_of("parallel-r1", model, settings={"variant": "unseen"})
    assert thought.fidelity == "approximate"
    assert "isolated" in thought.lost


def test_the_first_block_can_be_opened_for_a_model_that_is_told() -> None:
    model = model_of(ANSWERS)
    thought = thought_of("parallel-r1", model, settings={"opened": True})
    first = model.spell(model.requests[0].prompt_token_ids)
    assert first.endswith(
        "<|assistant|>Let me look at this in more than one way.\n<Parallel><Path>"
    )
    assert (thought.answer, thought.counts.forks) == ("Answer: 132", 1)
    trained = model_of(ANSWERS, TAGS)
    thought_of("parallel-r1", trained, settings={"opened": True})
    assert trained.spell(trained.requests[0].prompt_token_ids).endswith("<|assistant|>")
