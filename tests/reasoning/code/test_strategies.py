"""S* and PlanSearch with a scripted programmer: what is written, mended, run and chosen."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.reasoning.code.programmer import Machine, Programmer, problem, written
from weft.core.errors import BuildError, ModelUnavailable, ReasoningError, SandboxError
from weft.core.events import Event, RunFinished
from weft.reasoning.code.plansearch import PlanSearchStrategy, subsets
from weft.reasoning.code.sstar import SStarStrategy
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Document, Question
from weft.reasoning.strategies import make_strategy
from weft.reasoning.strategy import run_thought
from weft.reasoning.thought import Thought
from weft.testing import FakeClock, FakeModel, Reply

PUBLIC = ([0, 0], 0)
EASY = problem(PUBLIC)
DRAFTS = [written(word) for word in ("subtract", "multiply", "add", "subtract", "first")]


def solve(
    programmer: Programmer,
    question: Question = EASY,
    *,
    machine: Machine | None = None,
    strategy: type[SStarStrategy | PlanSearchStrategy] = SStarStrategy,
    width: int = 5,
    budget: int | None = None,
    **settings: object,
) -> Thought:
    options = ThinkOptions(width=width, budget=budget, settings=settings)
    made = strategy(programmer.model, options, machine or Machine())
    return FakeClock().run(run_thought(made, question))


def test_an_input_that_tells_them_apart_finds_the_right_one_of_five() -> None:
    thought = solve(Programmer(DRAFTS, inputs=[[1, 1], [2, 3]], separating=[[7, 2]]))
    assert thought.answer == "add\n"
    assert "5 of 5 programs pass 1 of 1 public tests; sstar: 3 of 3 pairs won" in thought.why
    assert [sample.text for sample in thought.samples][2] == "add\n"
    assert thought.key == thought.samples[2].key
    assert thought.samples[0].key == thought.samples[3].key != thought.key
    assert thought.counts.requests == 5 + 1 + 2 * 6
    assert thought.counts.critical_path_tokens < thought.counts.total_tokens


def test_inputs_found_for_a_pair_split_the_winners_group() -> None:
    drafts = [written(word) for word in ("multiply", "add", "subtract")]
    programmer = Programmer(drafts, inputs=[[2, 2]], separating=[[2, 2], [3, 3]])
    thought = solve(programmer, width=3)
    assert thought.answer == "add\n"
    assert thought.why.endswith(
        "1 of 1 pairs won, 1 played; among these, 1 of 1 pairs won, 1 played"
    )
    assert thought.key == thought.samples[0].key == thought.samples[1].key


def test_where_no_new_input_separates_a_known_one_does() -> None:
    thought = solve(Programmer(DRAFTS, inputs=[[1, 1], [2, 3]], separating=[]))
    assert thought.answer == "add\n"


def test_the_output_that_most_have_wins_a_vote() -> None:
    thought = solve(Programmer(DRAFTS, inputs=[[1, 1], [2, 3]]), select="majority")
    assert thought.answer == "subtract\n"
    assert "majority: 2 of 5 votes" in thought.why


def test_tests_of_the_models_own_decide_and_a_wrong_one_decides_little() -> None:
    tests = [
        {"input": [2, 3], "expected": 5},
        {"input": [2, 2], "expected": 4},
        {"input": [9, 9], "expected": 81},
        {"input": "no list", "expected": 1},
        {"input": [1, 2]},
    ]
    thought = solve(Programmer(DRAFTS, inputs=[[1, 2]], tests=tests), select="tests")
    assert thought.answer == "multiply\n"  # it passes [2, 2] and [9, 9], add only two as well
    tests[2]["expected"] = 18
    thought = solve(Programmer(DRAFTS, inputs=[[1, 2]], tests=tests), select="tests")
    assert thought.answer == "add\n"


def test_without_any_test_of_its_own_the_majority_decides() -> None:
    thought = solve(Programmer(DRAFTS, inputs=[[5, 3]], tests=[]), select="tests")
    assert thought.answer == "subtract\n"


def test_the_first_of_those_that_pass_is_taken_without_another_call() -> None:
    machine = Machine()
    thought = solve(
        Programmer(DRAFTS, mended="no"), problem(([2, 3], 5)), machine=machine, select="first"
    )
    assert thought.answer == "add\n"
    assert thought.why == "1 of 5 programs pass 1 of 1 public tests; the first"
    assert len(machine.runs) == 4  # each different program once


def test_a_program_that_fails_is_mended_with_what_it_did() -> None:
    programmer = Programmer(DRAFTS[:1], mended=written("add"))
    thought = solve(programmer, problem(([2, 3], 5)), width=1)
    assert thought.answer == "add\n"
    asked = programmer.model.requests[1].messages
    assert [message.role for message in asked] == ["system", "user", "assistant", "user"]
    assert "Input:\nadd(2, 3)\nExpected:\n5\nGot:\n-1" in asked[-1].content
    assert thought.samples[0].score == 1.0


def test_mending_stops_after_its_rounds_and_keeps_the_best() -> None:
    programmer = Programmer(DRAFTS[2:3], mended=written("subtract"))
    thought = solve(programmer, problem(([0, 0], 0), ([2, 3], 6)), width=1, debug=2)
    assert len(programmer.model.requests) == 3
    assert thought.answer == "add\n"
    assert thought.samples[0].score == 0.5
    none = Programmer(DRAFTS[:1], mended=written("add"))
    assert solve(none, problem(([2, 3], 5)), width=1, debug=0).answer == "subtract\n"
    assert len(none.model.requests) == 1


def test_an_answer_without_a_program_is_asked_for_one() -> None:
    programmer = Programmer(["I would add them."], mended=written("add"))
    assert solve(programmer, width=1).answer == "add\n"
    assert "no program in your answer" in programmer.model.requests[1].messages[-1].content


def test_where_nobody_writes_a_program_the_text_is_the_answer() -> None:
    model = FakeModel(["The answer is 42."])
    for strategy in (SStarStrategy, PlanSearchStrategy):
        made = strategy(model, ThinkOptions(width=2), Machine())
        thought = FakeClock().run(run_thought(made, EASY))
        assert thought.answer == "The answer is 42."
        assert thought.why == "none of 2 answers holds a program"
        assert all(sample.key is None and not sample.text for sample in thought.samples)


def test_a_program_that_crashes_loses_against_one_that_does_not() -> None:
    drafts = [written("divide"), written("divide"), written("add")]
    thought = solve(
        Programmer(drafts, inputs=[[0, 0]], separating=[[1, 0]]),
        problem(([0, 1], None)),
        width=3,
        debug=0,
    )
    assert thought.answer == "add\n"


def test_programs_that_read_and_print() -> None:
    question = problem(("0 0", "0"), function="")
    thought = solve(Programmer(DRAFTS, inputs=["2 3", 7], separating=["7 2"]), question)
    assert thought.answer == "add\n"


def test_a_sandbox_that_refuses_is_heard_before_any_token_is_spent() -> None:
    programmer = Programmer(DRAFTS)
    refusing = Machine(SandboxError("no namespaces", hint="allow them"))
    with pytest.raises(ReasoningError, match="no namespaces") as caught:
        solve(programmer, machine=refusing)
    assert caught.value.hint == "allow them"
    assert not programmer.model.requests


def test_a_model_that_fails_is_an_error_that_says_why() -> None:
    model = FakeModel([Reply(error=ModelUnavailable("gone", retryable=False))])
    made = SStarStrategy(model, ThinkOptions(width=2), Machine())
    with pytest.raises(ReasoningError, match=r"nothing was written: .*gone"):
        FakeClock().run(run_thought(made, EASY))


@pytest.mark.parametrize("budget", [1, 20, 60, 150, 400])
@pytest.mark.parametrize("strategy", [SStarStrategy, PlanSearchStrategy])
def test_a_budget_is_kept_to_the_token(
    strategy: type[SStarStrategy | PlanSearchStrategy], budget: int
) -> None:
    programmer = Programmer(DRAFTS, inputs=[[1, 1], [2, 3]], separating=[[7, 2]])
    spent: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, RunFinished):
            spent.append(event.usage.completion_tokens)

    made = strategy(programmer.model, ThinkOptions(width=5, budget=budget), Machine())
    with suppress(ReasoningError):
        FakeClock().run(run_thought(made, EASY, listeners=[listen]))
    assert len(spent) == 1
    assert spent[0] <= budget


def test_plans_come_from_different_combinations() -> None:
    programmer = Programmer(DRAFTS, inputs=[[1, 1], [2, 3]], separating=[[7, 2]])
    thought = solve(programmer, strategy=PlanSearchStrategy, width=6, observations=3)
    assert thought.answer == "add\n"
    asked = [request.messages for request in programmer.model.requests]
    deepened = [each[1].content for each in asked if "Some observations" in each[0].content]
    assert len(set(deepened)) == 3
    planned = [each[1].content for each in asked if "You plan" in each[0].content]
    assert len(planned) == 3
    assert sum("A colleague's plan" in each[0].content for each in asked) == 3
    programs = [each[1].content for each in asked if "You write Python" in each[0].content]
    assert len(programs) == 6
    assert sum("Add them, with care." in each for each in programs) == 3
    assert all("Pseudo-code:" in each for each in programs)
    assert (thought.counts.depth, len(thought.samples)) == (2, 6)


def test_subsets_differ_as_far_as_they_go() -> None:
    every = subsets("abcd", 10, seed=3)
    assert len(set(every)) == 10
    assert {len(each) for each in every} == {1, 2}
    assert subsets("abcd", 4, seed=3) == every[:4] != subsets("abcd", 4, seed=4)
    assert subsets("a", 3, seed=0) == [("a",)] * 3
    assert subsets("", 2, seed=0) == [(), ()]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"select": "best"}, "has no select 'best'"),
        ({"debug": -1}, "debug must be at least 0"),
        ({"wall_s": 0.0}, "wall_s must be positive"),
        ({"memory_mib": -1}, "memory_bytes must be positive"),
        ({"allow": ["all"]}, "there is no protection 'all'"),
        ({"depth": 1}, "no setting 'depth'"),
    ],
)
@pytest.mark.parametrize("name", ["sstar", "plansearch"])
def test_wrong_settings_are_found_before_anything_runs(
    name: str, settings: dict[str, object], said: str
) -> None:
    with pytest.raises(BuildError, match=said):
        make_strategy(name, FakeModel([""]), ThinkOptions(settings=settings))


def test_no_observations_are_no_search() -> None:
    with pytest.raises(BuildError, match="observations must be at least 1"):
        make_strategy("plansearch", FakeModel([""]), ThinkOptions(settings={"observations": 0}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "is no object"),
        ("[" * 100_000, "is no JSON"),
        ('{"tests": 1}', "no list"),
        ('{"tests": [1]}', "test 1 lacks"),
        ('{"tests": [{"input": 1, "expected": "2"}]}', "test 1 does not fit"),
        ('{"function": "f", "tests": [{"input": "1", "expected": 2}]}', "test 1 does not fit"),
        ('{"function": "f(); import os", "tests": []}', "no name of a function"),
        ('{"function": 1}', "no name of a function"),
    ],
)
def test_tests_that_are_none_are_refused(text: str, said: str) -> None:
    strategy = SStarStrategy(FakeModel([""]), ThinkOptions(), Machine())
    with pytest.raises(BuildError, match=said) as caught:
        strategy.work(Question("?", documents=(Document("tests.json", text),)))
    assert caught.value.hint
