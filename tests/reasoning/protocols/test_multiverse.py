"""Multiverse: goals, paths, nesting; positions and visibility where the model places tokens."""

from __future__ import annotations

import pytest

from tests.reasoning.protocols.protocol_trace import assert_golden, model_of, thought_of
from weft.reasoning.protocols.multiverse import Multiverse
from weft.testing import TokenReply

TAGS = (*Multiverse.tags, "<Think>", "</Think>")
GOAL = "<Parallel><Goal><Outline>1: a</Outline><Outline>2: b</Outline></Goal>"
ANSWERS: dict[str, str | TokenReply] = {
    "<|assistant|>": f"<Think>{GOAL}",
    "<Path>\n1:": "A</Path>",
    "<Path>\n2:": "BBB</Path>",
    "<Conclusion>\n": "AB</Conclusion></Parallel></Think>AB it is",
}


@pytest.mark.parametrize("mode", ["exact", "flat", "prompted"])
def test_the_trace_is_golden(mode: str) -> None:
    model = model_of(ANSWERS, () if mode == "prompted" else TAGS, placement=mode == "exact")
    thought = thought_of("multiverse", model)
    assert thought.answer == "AB it is"
    assert thought.fidelity == ("exact" if mode == "exact" else "approximate")
    assert_golden(f"multiverse-{mode}", model, thought)


def test_paths_begin_at_one_position_and_the_conclusion_after_the_longest() -> None:
    model = model_of(ANSWERS, TAGS, placement=True)
    thought = thought_of("multiverse", model)
    joined = model.requests[-1]
    base, one, two, tail = joined.placement
    goal = base.tokens
    assert model.spell(joined.prompt_token_ids[:goal]).endswith("</Goal>")
    assert base.position == 0
    assert (one.position, one.tokens, one.sees) == (goal, len("<\n1:A<"), (0,))
    assert (two.position, two.tokens, two.sees) == (goal, len("<\n2:BBB<"), (0,))
    assert (tail.position, tail.tokens, tail.sees) == (goal + two.tokens, 2, (0, 1, 2))
    assert thought.counts.prefill_extra_tokens == 0


def nested(text: str) -> str:
    if text.endswith("<|assistant|>"):
        return GOAL
    if text.endswith("<Path>\n1:"):
        return "<Goal><Outline>1.1: x</Outline><Outline>1.2: y</Outline></Goal>"
    if text.endswith("<Path>\n2:"):
        return "B</Path>"
    if text.endswith((".1:", ".2:")):
        return "deep</Path>" if text.endswith(".1:") else "deeper</Path>"
    return "in</Conclusion></Path>" if "B</Path>" not in text else "out</Conclusion>end"


@pytest.mark.parametrize("placement", [True, False])
def test_blocks_nest(placement: bool) -> None:
    model = model_of(nested, TAGS, placement=placement)
    thought = thought_of("multiverse", model)
    assert thought.counts.depth == 2
    assert thought.answer == "end"
    final = model.requests[-1]
    text = model.spell(final.prompt_token_ids)
    assert text.endswith(
        "</Goal><Path>\n1:<Goal><Outline>1.1: x</Outline><Outline>1.2: y</Outline></Goal>"
        "<Path>\n1.1:deep</Path><Path>\n1.2:deeper</Path><Conclusion>\nin</Conclusion></Path>"
        "<Path>\n2:B</Path><Conclusion>\n"
    )
    if not placement:
        assert final.placement == ()
        return
    base, outer, deep, deeper, inner, two, tail = final.placement
    fork = base.tokens
    assert [outer.position, two.position] == [fork, fork]
    nested_fork = fork + outer.tokens
    assert [deep.position, deeper.position] == [nested_fork, nested_fork]
    assert inner.position == nested_fork + deeper.tokens
    assert tail.position == inner.position + inner.tokens
    assert (outer.sees, deep.sees, deeper.sees) == ((0,), (0, 1), (0, 1))
    assert (inner.sees, two.sees, tail.sees) == ((0, 1, 2, 3), (0,), (0, 1, 2, 3, 4, 5))


def test_a_path_that_is_cut_off_inside_a_block_is_closed_from_the_inside() -> None:
    answers = dict(ANSWERS)
    answers["<Path>\n1:"] = TokenReply("<Parallel><Goal>", endless=True)
    thought = thought_of("multiverse", model_of(answers, TAGS), max_tokens=40)
    assert thought.tree is not None
    closed = thought.tree.forks[0].children[0].segments[-1]
    assert getattr(closed, "text", "").startswith("\n</Goal>\n</Goal>")
    assert getattr(closed, "text", "").endswith("\n</Parallel></Path>")


def test_blocks_that_are_too_deep_are_worked_out_by_the_path_itself() -> None:
    def answers(text: str) -> str:
        if text.endswith("1.2: y</Outline></Goal>"):
            return "<Path>\n1.1: by itself</Path>"
        return nested(text)

    thought = thought_of("multiverse", model_of(answers, TAGS), depth=1)
    assert (thought.counts.depth, thought.counts.forks) == (1, 1)
    assert thought.tree is not None
    assert "by itself</Path>" in thought.tree.forks[0].children[0].text


def test_a_model_that_is_told_may_forget_to_close_its_goal() -> None:
    answers = dict(ANSWERS)
    answers["<|assistant|>"] = "<Goal><Outline>1: a<Outline>2: b<Path>mine"
    answers["<Path>\n1:"] = "A<Conclusion>"
    model = model_of(answers)
    thought = thought_of("multiverse", model)
    joined = model.spell(model.requests[-1].prompt_token_ids)
    assert joined.endswith(
        "<Outline>2: b</Goal><Path>\n1:A</Path><Path>\n2:BBB</Path><Conclusion>\n"
    )
    assert thought.answer == "AB it is"
