"""The compiler agent: a plan runs while it is written; what failed is told and planned again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.agents.loops.agent_run import ContentWhenDone, Pause, ScriptedModel, play_agent
from tests.planner.runnable import ComputingTools, call_key, compute
from weft.agents.agent import AgentOptions, AgentResult, run_agent
from weft.agents.loops import check_options, make_agent
from weft.agents.loops.compiler import CompilerAgent
from weft.agents.loops.joiner import Finish, Replan
from weft.core.budget import Budget
from weft.core.errors import AgentError, BuildError, ModelUnavailable
from weft.core.events import NodeLogged, NodeStreamed
from weft.core.ports import ModelRequest
from weft.core.values import ToolSpec
from weft.engine import BudgetLimit
from weft.testing import FakeClock, FakeModel, FakeTools, Reply


def compiler(
    model: Any, tools: Any, joiner: ContentWhenDone | None = None, **options: Any
) -> CompilerAgent:
    return CompilerAgent(tools, model, AgentOptions(**options), joiner=joiner or ContentWhenDone())


class Sleeper:
    """Tools `first` (50 ms) and `second` (instant)."""

    def __init__(self) -> None:
        self.tools = FakeTools(first=self.first, second=self.second, bad=self.bad)

    async def first(self, **_: Any) -> str:
        await asyncio.sleep(0.05)
        return "first"

    def second(self, **_: Any) -> str:
        return "second"

    def bad(self, **_: Any) -> str:
        raise ValueError("no such luck")


# -- done when 1: a stalled planner, and a tool that raises ---------------------------------------


def test_a_stalled_planner_holds_up_nothing() -> None:
    reply: list[Pause] = [
        (0.0, "1. first()\n"),
        (0.0, "2. second(of=$1)\n"),
        (2.0, "3. join($2)\n"),
    ]
    played = play_agent(compiler(ScriptedModel(reply), Sleeper().tools))
    assert played.ended_s("s1") == pytest.approx(0.05)
    assert played.started_s("s2") - played.ended_s("s1") < 0.005
    assert played.ended_s("s2") < 0.06
    assert played.ended_s("plan1") == pytest.approx(2.0)


def test_a_step_starts_when_its_line_is_complete_and_not_before() -> None:
    reply: list[Pause] = [(0.0, "1. second("), (1.0, ")"), (1.0, "\n"), (1.0, "2. join()")]
    played = play_agent(compiler(ScriptedModel(reply), Sleeper().tools))
    assert played.started_s("s1") == pytest.approx(2.0)


def test_a_tool_that_raises_never_hangs_and_the_outcome_names_it() -> None:
    plan = "1. bad()\n2. second(of=$1)\n3. second()\n4. join($2, $3)\n"
    played = play_agent(compiler(ScriptedModel(plan), Sleeper().tools, rounds=1))
    failed, blocked, fine = (played.steps[number] for number in (1, 2, 3))
    assert failed.failure is not None
    assert failed.failure.error == "ToolRaised"
    assert failed.failure.message == "bad raised ValueError: no such luck"
    assert blocked.status == "skipped"
    assert "compiler/s1, which failed" in str(blocked.failure)
    assert fine.value == "second"
    told = {one.number: one.outcome.status for one in played.answer.calls}
    assert told == {1: "failed", 2: "skipped", 3: "succeeded"}
    assert played.result.result.status == "succeeded"  # the agent got over it


def test_a_tool_that_is_not_there_is_a_malformed_plan() -> None:
    model = ScriptedModel("1. third()\n2. join()\n", "1. second()\n2. join($1)\n")
    played = play_agent(compiler(model, Sleeper().tools))
    assert played.answer.calls[0].outcome.value == "second"
    assert "third" in model.requests[1].messages[-1].content


# -- rounds ---------------------------------------------------------------------------------------

BROKEN = call_key("add", {"a": 3, "b": 3})
FIRST = """\
1. add(a=1, b=2)
2. add(a=3, b=$1.sum)
3. add(a=$2.sum, b=0)
4. join($3)
"""


def test_failures_are_told_and_results_are_carried_on() -> None:
    model = ScriptedModel(FIRST, "5. add(a=$1.sum, b=30)\n6. join($5)\n")
    joiner = ContentWhenDone()
    tools = ComputingTools(failing={BROKEN: 9})
    played = play_agent(compiler(model, tools, joiner))
    assert played.answer.rounds == 2
    assert played.steps[5].value == compute("add", {"a": 3, "b": 30})
    told = model.requests[1].messages[-1].content
    assert '1. add(a=1, b=2) = {"sum": 3, "parts": [1, 2], "even": false}' in told
    assert "2. add(a=3, b=$1.sum) failed: ToolRaised: add is out of order" in told
    assert "3. add(a=$2.sum, b=0) did not run: it needs $2" in told
    assert "2 calls went wrong" in told
    assert [one.number for one in joiner.seen[0]] == [1, 2, 3]
    assert [one.number for one in joiner.seen[1]] == [1, 2, 3, 5]
    assert joiner.seen[1][:3] == joiner.seen[0]
    assert [plan.steps[0].number for plan in played.answer.plans] == [1, 5]


def test_a_call_that_succeeded_is_not_made_again() -> None:
    again = "4. add(a=1, b=2)\n5. add(a=3, b=$4.sum)\n6. add(a=$5.sum, b=0)\n7. join($6)\n"
    tools = ComputingTools(failing={BROKEN: 1})
    played = play_agent(compiler(ScriptedModel(FIRST, again), tools))
    assert sorted(tools.calls) == sorted(
        [call_key("add", {"a": 1, "b": 2}), BROKEN, BROKEN, call_key("add", {"a": 6, "b": 0})]
    )
    assert played.steps[4].value == played.steps[1].value
    reused = next(one for one in played.answer.calls if one.number == 4)
    assert reused.outcome.via == "cache"
    logged = [event.text for event in played.all(NodeLogged) if event.node.endswith("s4")]
    assert logged == ["not made again: as in step 1"]


def test_an_equal_call_of_one_plan_is_refused_and_the_model_is_told() -> None:
    tools = ComputingTools()
    model = ScriptedModel(
        "1. spread(n=2)\n2. spread(n=2)\n3. join()\n", "2. spread(n=3)\n3. join($1, $2)\n"
    )
    played = play_agent(compiler(model, tools))
    assert len(tools.calls) == 2
    told = model.requests[1].messages[-1].content
    assert "step 2 makes the same call as step 1, and spread may have its effect again" in told
    assert [step.arguments["n"] for step in played.answer.plans[0].steps] == [2, 3]


def test_a_correction_that_repeats_itself_ends_there() -> None:
    tools = ComputingTools()
    model = ScriptedModel(
        "1. spread(n=2)\n2. spread(n=2)\n3. join()\n",
        "2. spread(n=3)\n3. spread(n=3)\n4. spread(n=4)\n5. join()\n",
    )
    played = play_agent(compiler(model, tools))
    assert len(tools.calls) == 2
    assert [step.number for step in played.answer.plans[0].steps] == [1, 2]
    logged = [event.text for event in played.all(NodeLogged) if event.node.endswith("mend1")]
    assert "the plan ends before step 3: it repeats its calls" in logged


def test_a_plan_that_goes_round_in_circles_ends() -> None:
    class Pure(ComputingTools):
        def specs(self) -> tuple[ToolSpec, ...]:
            return tuple(replace(spec, pure=True, effect="pure") for spec in super().specs())

    tools = Pure()
    lines = [f"{number}. spread(n={2 + number % 2})\n" for number in range(1, 30)]
    played = play_agent(compiler(ScriptedModel("".join(lines) + "30. join()\n"), tools))
    assert len(tools.calls) == 2
    # Two steps may repeat a call, and take its result; the third one ends the plan.
    assert [step.number for step in played.answer.plans[0].steps] == [1, 2, 3, 4]
    assert [one.outcome.via for one in played.answer.calls] == ["", "", "cache", "cache"]
    assert played.steps[4].value == played.steps[2].value


def test_of_equal_calls_the_one_that_succeeded_counts() -> None:
    bad = call_key("spread", {"n": 2})
    tools = ComputingTools(failing={bad: 1})
    plan = "1. spread(n=3)\n2. spread(n=2) for each $1\n3. join()\n"
    played = play_agent(compiler(ScriptedModel(plan, "4. spread(n=2)\n5. join($4)\n"), tools))
    assert tools.calls.count(bad) == 3
    assert played.steps[4].value == [0, 1]


def test_the_items_of_a_map_that_succeeded_are_not_done_again() -> None:
    plan = "1. spread(n=3)\n2. add(a=$item, b=1) for each $1\n3. join($2)\n"
    rest = "4. add(a=$item, b=1) for each $1\n5. join($4)\n"
    bad = call_key("add", {"a": 1, "b": 1})
    tools = ComputingTools(failing={bad: 1})
    played = play_agent(compiler(ScriptedModel(plan, rest), tools))
    assert [value["sum"] for value in played.steps[4].value] == [1, 2, 3]
    assert tools.calls.count(bad) == 2
    assert len(tools.calls) == 5


def test_the_number_of_a_step_that_failed_may_be_used_again() -> None:
    rest = "2. add(a=4, b=$1.sum)\n3. join($2)\n"
    tools = ComputingTools(failing={BROKEN: 9})
    played = play_agent(compiler(ScriptedModel(FIRST, rest), tools))
    assert played["s2_"].value["sum"] == 7


def test_a_question_that_needs_no_tool() -> None:
    tools = ComputingTools()
    played = play_agent(compiler(ScriptedModel("1. join()\n"), tools))
    assert played.answer.value == []
    assert played.answer.calls == ()
    assert not tools.calls


def test_a_round_in_which_nothing_was_planned_is_the_last() -> None:
    model = ScriptedModel(FIRST, "5. join($1)\n")
    played = play_agent(compiler(model, ComputingTools(failing={BROKEN: 9})))
    assert played.answer.rounds == 2
    assert played.answer.value == [(1, compute("add", {"a": 1, "b": 2}))]


def test_a_condition_that_does_not_hold_leaves_out_what_refers_to_it() -> None:
    plan = "1. add(a=1, b=2)\n2. spread(n=1) if $1.even\n3. label(text='x', of=$2)\n4. join()\n"
    played = play_agent(compiler(ScriptedModel(plan), ComputingTools()))
    assert played.steps[2].status == played.steps[3].status == "skipped"
    assert played.steps[3].failure is None
    assert played.answer.rounds == 1


def test_results_that_json_cannot_hold_are_passed_on_as_they_are() -> None:
    odd = {(1, 2): object()}
    got: list[Any] = []
    tools = FakeTools(make=lambda: odd, take=lambda of: got.append(of))
    plan = "1. make()\n2. take(of=$1)\n3. join($2)\n"
    played = play_agent(compiler(ScriptedModel(plan), tools))
    assert got == [odd]
    assert played.answer.rounds == 1


# -- malformed plans ------------------------------------------------------------------------------


def test_a_malformed_plan_is_told_once_and_what_runs_stays() -> None:
    bad: list[Pause] = [(0.0, "1. first()\n"), (0.01, "2. second(of=$9)\n"), (0.0, "3. join()\n")]
    model = ScriptedModel(bad, "2. second(of=$1)\n3. join($2)\n")
    sleeper = Sleeper()
    played = play_agent(compiler(model, sleeper.tools))
    assert [name for name, _ in sleeper.tools.calls] == ["first", "second"]
    assert played.steps[2].value == "second"
    assert [step.number for step in played.answer.plans[0].steps] == [1, 2]
    assert played.answer.rounds == 1
    assert played.result.result.status == "succeeded"
    *_, wrote, told = model.requests[1].messages
    assert wrote.role == "assistant"
    assert wrote.content.startswith("1. first()\n2. second(of=$9)")
    assert "$9" in told.content
    assert "1. first()" in told.content
    assert "beginning with number 2" in told.content


def test_a_correction_that_writes_everything_again_repeats_no_call() -> None:
    bad: list[Pause] = [(0.0, "1. first()\n"), (0.01, "2. third()\n")]
    model = ScriptedModel(bad, "2. first()\n3. second(of=$2)\n4. join($3)\n")
    sleeper = Sleeper()
    played = play_agent(compiler(model, sleeper.tools))
    assert [name for name, _ in sleeper.tools.calls] == ["first", "second"]
    assert played.ended_s("s2") == pytest.approx(0.05)  # it waited for the call under way


def test_a_correction_shares_the_failure_of_a_call_under_way() -> None:
    bad: list[Pause] = [(0.0, "1. add(a=3, b=3)\n"), (0.01, "2. third()\n")]
    model = ScriptedModel(bad, "2. add(a=3, b=3)\n3. join($2)\n", "4. add(a=3, b=3)\n5. join()\n")
    tools = ComputingTools(2, failing={BROKEN: 1})
    played = play_agent(compiler(model, tools))
    assert "the same call failed in step 1: ToolRaised" in str(played.steps[2].failure)
    assert tools.calls == [BROKEN, BROKEN]
    assert played.steps[4].value["sum"] == 6


def test_a_plan_that_stays_malformed_is_an_error_and_nothing_goes_on() -> None:
    bad = "1. first()\n2. third()\n3. join()\n"
    played = play_agent(compiler(ScriptedModel(bad, "2. fourth()\n3. join()\n"), Sleeper().tools))
    assert played.result.answer is None
    told = r"cannot be used: .*'third'.*; nor can its correction: .*'fourth'"
    with pytest.raises(AgentError, match=told):
        played.result.value()
    assert played.steps[1].status == "cancelled"


def test_a_plan_cut_off_before_its_join_is_malformed() -> None:
    model = ScriptedModel("1. second()\n", "2. join($1)\n")
    played = play_agent(compiler(model, Sleeper().tools))
    assert [one.outcome.value for one in played.answer.calls] == ["second"]


# -- budgets --------------------------------------------------------------------------------------


class NeverContent(ContentWhenDone):
    """Always asks for more, even in the last round."""

    async def decide(self, *args: Any, **kwargs: Any) -> Finish | Replan:
        await super().decide(*args, **kwargs)
        return Replan("more")


def test_rounds_are_bounded() -> None:
    model = ScriptedModel(
        reply=lambda request: "{0}. add(a={0}, b=1)\n{1}. join()\n".format(
            len(model.requests), len(model.requests) + 1
        )
    )
    tools = ComputingTools()
    played = play_agent(compiler(model, tools, NeverContent(), rounds=3))
    with pytest.raises(AgentError, match="no answer after 3 rounds and 3 calls"):
        played.result.value()
    assert len(model.requests) == len(tools.calls) == 3


def test_calls_are_bounded_and_the_last_word_is_asked_for() -> None:
    plan = "".join(f"{n}. add(a={n}, b=1)\n" for n in range(1, 8)) + "8. join()\n"
    tools = ComputingTools()
    played = play_agent(compiler(ScriptedModel(plan), tools, calls=5))
    assert len(tools.calls) == 5
    assert len(played.answer.value) == 5
    refused = [one for one in played.answer.calls if not one.outcome.ok]
    assert {str(one.outcome.failure).split(":")[0] for one in refused} == {"BudgetExceeded"}


def test_a_map_over_more_than_the_calls_allow_begins_none() -> None:
    plan = "1. spread(n=3)\n2. add(a=$item, b=1) for each $1\n3. join($2)\n"
    tools = ComputingTools()
    played = play_agent(compiler(ScriptedModel(plan), tools, calls=2, rounds=1))
    assert len(tools.calls) == 1
    assert "would make 3 calls, 2 are allowed" in str(played.steps[2].failure)


def test_without_calls_it_only_plans_and_joins() -> None:
    tools = ComputingTools()
    played = play_agent(compiler(ScriptedModel(FIRST), tools, calls=0))
    assert not tools.calls
    assert played.answer.value == []


def test_a_spent_budget_ends_the_run_with_what_it_has() -> None:
    model = ScriptedModel(FIRST, "5. add(a=$1.sum, b=30)\n6. join($5)\n")
    tools = ComputingTools(failing={BROKEN: 9})
    played = play_agent(compiler(model, tools), limit=BudgetLimit(Budget(tokens=100)))
    assert played.result.answer is None
    assert played.result.result.status == "partial"
    with pytest.raises(AgentError, match="tokens spent"):
        played.result.value()


def test_with_a_spent_budget_that_degrades_there_is_no_further_plan() -> None:
    model = ScriptedModel(FIRST, "5. add(a=$1.sum, b=30)\n6. join($5)\n")
    tools = ComputingTools(failing={BROKEN: 9})
    limit = BudgetLimit(Budget(tokens=100), on_reached="degrade")
    played = play_agent(compiler(model, tools), limit=limit)
    assert len(model.requests) == 1
    with pytest.raises(AgentError, match="there is no plan: BudgetExceeded"):
        played.result.value()


def test_the_model_is_told_what_is_left() -> None:
    model = ScriptedModel("1. join()\n")
    play_agent(
        compiler(model, ComputingTools(), max_tokens=700, instructions="Be terse."),
        limit=BudgetLimit(Budget(tokens=500)),
        deadline_s=9.0,
    )
    (request,) = model.requests
    assert request.sampling.max_tokens == 500
    assert request.sampling.temperature == 0.0
    assert request.program is not None
    assert request.timeout_s == pytest.approx(10.0)
    assert "Be terse." in request.messages[0].content


def test_a_tool_that_never_returns_ends_with_the_run() -> None:
    class Silent(ComputingTools):
        async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
            self.calls.append(name)
            await asyncio.Event().wait()

    tools = Silent()
    played = play_agent(compiler(ScriptedModel(FIRST), tools), deadline_s=30)
    assert tools.calls == ["add"]
    assert played.steps[1].status == "cancelled"
    with pytest.raises(AgentError, match="the deadline of 30 s passed"):
        played.result.value()


def test_one_agent_may_work_on_many_questions_at_once() -> None:
    def reply(request: ModelRequest) -> list[Pause]:
        number = request.messages[-1].content.rpartition("Question: ")[2]
        return [(0.1, f"1. add(a={number}, b=1)\n"), (0.1, "2. join($1)\n")]

    agent = compiler(ScriptedModel(reply=reply), ComputingTools())

    async def main() -> list[AgentResult]:
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(run_agent(agent, str(number))) for number in range(20)]
        return [run.result() for run in runs]

    answers = [result.answer for result in FakeClock().run(main())]
    sums = [answer.calls[0].outcome.value["sum"] for answer in answers if answer is not None]
    assert sums == [number + 1 for number in range(20)]


def test_slots_of_the_run_hold_for_its_calls() -> None:
    plan = "".join(f"{n}. add(a={n}, b=1)\n" for n in range(1, 8)) + "8. join()\n"
    tools = ComputingTools(seed=3)
    played = play_agent(compiler(ScriptedModel(plan), tools), max_concurrency=2)
    assert len(played.answer.value) == 7
    assert tools.most <= 2


def test_the_slots_of_tools_that_have_them_are_taken() -> None:
    class Slotted(ComputingTools):
        def resource(self, name: str) -> str | None:
            return "machine" if name == "add" else None

    plan = "".join(f"{n}. add(a={n}, b=1)\n" for n in range(1, 5)) + "5. join()\n"
    tools = Slotted(seed=3)
    play_agent(compiler(ScriptedModel(plan), tools), limits={"machine": 1})
    assert tools.most == 1


# -- the rest -------------------------------------------------------------------------------------


def test_a_model_that_fails_is_an_agent_that_fails() -> None:
    model = FakeModel([Reply(error=ModelUnavailable("gone"))])
    played = play_agent(compiler(model, ComputingTools()))
    with pytest.raises(AgentError, match="there is no plan: ModelUnavailable: gone"):
        played.result.value()


def test_the_plan_streams_as_it_is_written() -> None:
    played = play_agent(compiler(ScriptedModel(FIRST), ComputingTools()))
    streamed = [event.text for event in played.all(NodeStreamed) if event.node.endswith("/plan1")]
    assert "".join(streamed) == FIRST


def test_it_answers_with_a_joiner_of_its_own() -> None:
    replies = [FIRST, '{"thought": "all there", "next": {"answer": {"total": 6}}}']
    schema = {
        "type": "object",
        "properties": {"total": {"type": "integer"}},
        "required": ["total"],
    }
    tools = ComputingTools()
    agent = make_agent("compiler", tools, FakeModel(replies), AgentOptions(schema=schema))
    played = play_agent(agent)
    assert played.answer.value == {"total": 6}
    assert played.answer.thought == "all there"


def test_an_unknown_agent_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(BuildError, match="compiler, divide, react, parallel-react"):
        make_agent("compilr", ComputingTools(), ScriptedModel(""))
    with pytest.raises(BuildError, match="compiler, divide, react, parallel-react"):
        check_options("compilr", AgentOptions())


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"calls": -1}, {"max_tokens": 0}])
def test_options_have_ranges(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        AgentOptions(**wrong)  # type: ignore[arg-type]
