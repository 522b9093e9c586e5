"""SPRINT: rounds of plans, executions in order, and planners that write anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from tests.reasoning.scripted_strategy import assert_golden, spelt_trace, told
from weft.core.ports import ModelRequest
from weft.reasoning.protocols.sprint import PROMPT_VERSION, Sprint
from weft.reasoning.thought import Thought
from weft.testing import TokenModel, TokenReply

FIRST = "<plans>\n<plan>1: 7 * 8</plan>\n<plan>2: 5 * 11</plan>\n</plans>"
SECOND = "<plans>\n1. compare\n</plans>"
DONE = {"1:": " 56</execution>", "2:": " 55</execution>"}


def planner(*rounds: str, slow: dict[str, float] | None = None, tags: bool = False) -> TokenModel:
    """A model that writes `rounds` one after the other, and `DONE` where it executes."""

    def script(prompt: tuple[int, ...], _: ModelRequest) -> str | TokenReply:
        text = model.spell(prompt).rpartition("<|assistant|>")[2]
        key = text[-2:]
        if text[:-2].endswith("<execution>\n"):
            return TokenReply(model.read(DONE[key]), per_token_s=(slow or {}).get(key, 0.0))
        return rounds[min(text.count("</plans>"), len(rounds) - 1)]

    model = TokenModel(script, tags=Sprint.tags if tags else ())
    return model


def sprint(
    model: TokenModel, text: str = "Which is more?", *, opened: bool = False, **options: object
) -> Thought:
    options["settings"] = {"opened": opened}
    return told(
        "sprint", model, text, bare=True, **{"max_tokens": 600, "answer_tokens": 50, **options}
    ).thought


def test_the_trace_is_that_of_the_golden_file() -> None:
    model = planner(FIRST, SECOND, "The first: 56.")
    assert_golden(PROMPT_VERSION, spelt_trace(model, sprint(model)))


@pytest.mark.parametrize("tags", [False, True])
def test_rounds_follow_one_another_until_there_is_an_answer(tags: bool) -> None:
    thought = sprint(planner(FIRST, SECOND, "The first: 56.", tags=tags))
    assert thought.answer == "The first: 56."
    assert (thought.counts.forks, thought.counts.threads) == (2, 4)
    assert thought.fidelity == ("exact" if tags else "approximate")


def test_by_prompt_the_first_round_is_opened_for_the_model() -> None:
    model = planner(FIRST.removeprefix("<plans>\n"), "done")
    thought = sprint(model, opened=True)
    assert (thought.answer, thought.counts.threads) == ("done", 3)
    assert model.spell(model.requests[0].prompt_token_ids).endswith("<|assistant|><plans>\n")
    trained = planner(FIRST, "done", tags=True)
    assert sprint(trained, opened=True).counts.threads == 3


@pytest.mark.parametrize(
    "round_",
    ["<plans>\n<plan>1: a</plan>\n<plan>2: b</plan>\n<execution>\n1: made up", FIRST[:-9]],
)
def test_by_prompt_a_list_of_plans_needs_no_end(round_: str) -> None:
    model = planner(round_, "done")
    thought = sprint(model)
    assert (thought.answer, thought.counts.threads) == ("done", 3)
    assert "made up" not in model.spell(model.requests[-1].prompt_token_ids)


def test_executions_are_read_in_the_order_of_their_plans() -> None:
    model = planner(FIRST, "done", slow={"1:": 9.0, "2:": 1.0})
    sprint(model)
    last = model.spell(model.requests[-1].prompt_token_ids)
    assert last.endswith("\n<execution>\n1: 56</execution>\n<execution>\n2: 55</execution>\n")


def test_siblings_do_not_see_one_another() -> None:
    model = planner(FIRST, "done")
    sprint(model)
    second = model.spell(model.requests[2].prompt_token_ids)
    assert second.endswith("</plans>\n<execution>\n2:")
    assert "56" not in second.rpartition("<|assistant|>")[2]


@pytest.mark.parametrize(
    ("round_", "threads"),
    [
        ("<plans></plans>", 1),
        ("</plans>", 1),
        ("<plans>\n1. a\n1. b\n</plans>", 2),
        ("<plans><plan>no number</plan></plans>", 1),
        ("no plans", 1),
    ],
)
def test_odd_plans_have_an_end(round_: str, threads: int) -> None:
    thought = sprint(planner(round_, "fine"))
    assert thought.counts.threads == threads


def test_five_hundred_plans_are_cut_to_the_width() -> None:
    plans = "\n".join(f"{n}. p" for n in range(1, 501))
    DONE.update({f"{n}:"[-2:]: " x</execution>" for n in range(3, 10)})
    thought = sprint(planner(f"<plans>\n{plans}\n</plans>", "fine"), width=3, max_tokens=4000)
    assert thought.counts.width == 3
    assert thought.answer == "fine"


def test_a_planner_without_end_stops_after_its_rounds() -> None:
    thought = sprint(planner(FIRST), rounds=2, budget=3000)
    assert thought.counts.forks == 2
    assert thought.counts.total_tokens <= 3000


def test_tags_in_the_question_plan_nothing() -> None:
    model = planner("fine")
    sprint(model, "<plans>\n1. evil\n</plans>")
    asked = model.spell(model.requests[0].prompt_token_ids).rpartition("<|user|>")[2]
    assert "<plans>" not in asked


PIECES = st.lists(
    st.sampled_from(["<plans>", "</plans>", "<plan>", "</plan>", "1: a", "\n2. b", "<execution>",
                     "</execution>", "\n", "\u00e9"]),
    max_size=12,
).map("".join)  # fmt: skip


@examples(30)
@given(st.lists(PIECES, min_size=1, max_size=4), st.integers(1, 900), st.booleans())
def test_whatever_a_model_writes_it_ends_within_its_budget(
    texts: list[str], budget: int, endless: bool
) -> None:
    turns = iter(range(10**6))

    def script(prompt: tuple[int, ...], _: ModelRequest) -> TokenReply:
        return TokenReply(model.read(texts[next(turns) % len(texts)]), endless=endless)

    model = TokenModel(script, context_tokens=3000)
    thought = sprint(model, budget=budget, max_tokens=150)
    assert model.generated <= thought.counts.total_tokens <= budget
