"""ParaThinker: thoughts from one prompt, one summary that reads them all."""

from __future__ import annotations

import pytest

from tests.reasoning.protocols.protocol_trace import assert_golden, model_of, thought_of
from weft.reasoning.protocols.parathinker import LEAD, ParaThinker
from weft.testing import TokenReply

TAGS = ParaThinker.tags
ANSWERS: dict[str, str | TokenReply] = {
    "<think1>": "six sevens</think1>",
    "<think2>": "a longer way, and no end",
    "<think3>": "by heart</think3>",
    LEAD: "42.</summary>never",
}


@pytest.mark.parametrize("mode", ["placed", "flat"])
def test_the_trace_is_golden(mode: str) -> None:
    model = model_of(ANSWERS, TAGS, placement=mode == "placed")
    thought = thought_of("parathinker", model, settings={"paths": 3})
    assert thought.answer == "42."
    assert_golden(f"parathinker-{mode}", model, thought)


def test_by_prompt_it_is_asked_again_with_what_was_thought() -> None:
    replies = iter(["It is <think1> 41.", "<think>hm</think>It is 42.", "So: 42."])
    model = model_of(lambda _: next(replies))
    thought = thought_of("parathinker", model, width=2)
    assert thought.answer == "So: 42."
    assert thought.fidelity == "approximate"
    assert_golden("parathinker-prompted", model, thought)


def test_all_thoughts_start_at_the_end_of_the_prompt() -> None:
    model = model_of(ANSWERS, TAGS, placement=True)
    thought_of("parathinker", model, settings={"paths": 3})
    final = model.requests[-1]
    base, *paths, tail = final.placement
    assert [path.position for path in paths] == [base.tokens] * 3
    assert [path.sees for path in paths] == [(0,)] * 3
    assert tail.position == base.tokens + max(path.tokens for path in paths)
    assert tail.sees == (0, 1, 2, 3)


def test_when_the_first_thought_ends_the_others_are_cut_off_and_kept() -> None:
    answers = dict(ANSWERS)
    answers["<think2>"] = TokenReply("well ", endless=True)
    model = model_of(answers, TAGS, per_token_s=1.0)
    thought = thought_of("parathinker", model, settings={"paths": 3, "first_finish": True})
    assert thought.tree is not None
    states = [child.state.value for child in thought.tree.forks[0].children]
    assert states == ["cancelled", "cancelled", "done"]
    final = model.spell(model.requests[-1].prompt_token_ids)
    assert "<think1>six seven</think1><think2>well     </think2>" in final
    assert "by heart</think3><summary>" in final
    assert thought.counts.cancelled_tokens == 2 * 9
    assert (thought.answer, model.cancelled) == ("42.", 2)


def test_a_long_prompt_is_computed_once_before_the_others_are_sent() -> None:
    model = model_of(ANSWERS, TAGS, prefill_s=0.01, per_token_s=0.1)
    thought = thought_of("parathinker", model, "why " * 100, settings={"paths": 3})
    prompts = [len(request.prompt_token_ids) for request in model.requests]
    blocks = (prompts[0] - 1) // 16 * 16
    assert thought.counts.cached_tokens >= 2 * blocks
