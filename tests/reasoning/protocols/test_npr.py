"""NPR: rounds of a guideline, steps and a takeaway."""

from __future__ import annotations

import pytest

from tests.reasoning.protocols.protocol_trace import assert_golden, model_of, thought_of
from weft.reasoning.protocols.npr import Npr

ROUND = "<guideline><plan>1: factor</plan><plan>2: draw</plan></guideline>"


def answers(text: str) -> str:
    if text.endswith("<|assistant|>"):
        return ROUND
    if text.endswith("<|assistant|><guideline>\n"):
        return ROUND.removeprefix("<guideline>")
    if text.endswith("<step>\n1:"):
        return " 2 and 3</step>" if text.count("<takeaway>") < 2 else " again</step>"
    if text.endswith("<step>\n2:"):
        return " a parabola, unfinished"
    if text.endswith("<takeaway>") and "</takeaway><" not in text:
        return f"open</takeaway>{ROUND}"
    return "both</takeaway>\n\\boxed{2, 3}"


@pytest.mark.parametrize("mode", ["exact", "flat", "prompted"])
def test_the_trace_is_golden(mode: str) -> None:
    model = model_of(answers, () if mode == "prompted" else Npr.tags, placement=mode == "exact")
    thought = thought_of("npr", model)
    assert thought.answer == "\\boxed{2, 3}"
    assert thought.counts.forks == 2
    assert_golden(f"npr-{mode}", model, thought)


def test_there_are_as_many_steps_as_plans_and_they_do_not_nest() -> None:
    def many(text: str) -> str:
        if text.endswith("<|assistant|>"):
            return (
                "<guideline>"
                + "".join(f"<plan>{n}: p</plan>" for n in range(1, 6))
                + "</guideline>"
            )
        return ROUND if text.endswith(":") else "x</takeaway>done"

    thought = thought_of("npr", model_of(many, Npr.tags))
    assert thought.tree is not None
    (fork,) = thought.tree.forks
    assert [child.key for child in fork.children] == ["1", "2", "3", "4", "5"]
    assert thought.counts.depth == 1
    assert all(child.text.endswith("</guideline></step>") for child in fork.children)
