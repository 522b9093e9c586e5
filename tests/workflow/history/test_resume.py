"""What is finished is not done again, and everything else comes out as in an undisturbed run."""

from __future__ import annotations

import asyncio

import pytest

import weft
from tests.workflow.case import loads
from tests.workflow.history.recorded_runs import House, ended
from weft.core.errors import (
    InputError,
    ModelUnavailable,
    RunBusy,
    ToolRaised,
    UnknownReference,
)
from weft.core.events import HumanAnswered, HumanAsked
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.core.ports.journal import Letter
from weft.durability.calls import Confirmation
from weft.testing import Reply
from weft.workflow import FlowRun
from weft.workflow.history.answers import PendingQuestions
from weft.workflow.history.replay import replay
from weft.workflow.history.resume import WorkflowChanged, claim_run
from weft.workflow.history.run_history import find_run, standing_word

NOTES = """\
  notes:
    map: [a, b, c, d]
    as: x
    width: 2
    do: {model: small, prompt: "note {{ x }}"}
  best: {model: small, prompt: "best of {{ notes | length }}"}"""


def slow(request: ModelRequest) -> Reply:
    return Reply(f"<{request.messages[-1].content}>", first_token_s=1.0, per_token_s=0.0)


def failing(request: ModelRequest) -> Reply:
    return Reply(error=ModelUnavailable("gone"))


def test_only_what_was_not_finished_runs_again() -> None:
    house, flow = House(slow), loads(NOTES, 'a: "{{ best }}"')
    left = house.left(flow, 1.5)
    assert left.status == "cancelled"
    assert standing_word(house.journal.runs()[0]) == "interrupted"
    before, house.asked = house.asked, []
    result = house.resume(flow)
    assert result.outputs == {"a": "<best of 4>"}
    assert sorted(before) == ["note a", "note b", "note c", "note d"]
    assert sorted(house.asked) == ["best of 4", "note c", "note d"]
    assert house.journal.runs()[0].standing == "succeeded"
    assert house.journal.runs()[0].parts == 2
    assert set(ended(house.story()).values()) == {"succeeded"}
    assert house.journal.summary(result.run).run == result.run


def test_several_questions_are_answered_from_outside_and_on_resume() -> None:
    nodes = """\
  one: {ask: "One?", schema: integer}
  two: {ask: "Two?"}
  three: {ask: "Three?", schema: boolean}
  all: {value: ["{{ one }}", "{{ two }}", "{{ three }}"]}"""
    house, flow = House(), loads(nodes, 'a: "{{ all }}"')
    house.left(flow, 1.0)
    assert standing_word(house.journal.runs()[0]) == "asking"
    answers = PendingQuestions(house.journal)
    assert [asked.node for asked in answers.questions("last")] == ["one", "two", "three"]
    with pytest.raises(InputError, match='not of type "integer"'):
        answers.give(answers.question("last", "one"), "many")
    with pytest.raises(UnknownReference, match="asks nothing"):
        answers.question("last", "four")
    assert not answers.give(answers.question("last", "one"), 1)
    result = house.resume(flow, {"two": "2", "three": True})
    assert result.outputs == {"a": [1, "2", True]}
    assert answers.questions("last") == ()


def test_an_open_question_is_asked_once_in_the_record_and_answered_at_once() -> None:
    nodes = '  sure: {ask: "Sure?", schema: boolean}\n  end: {value: "{{ sure }}"}'
    house, flow = House(), loads(nodes, 'a: "{{ end }}"')
    house.left(flow, 1.0)
    for _ in range(2):  # nobody answers in this part either
        house.wait(lambda: flow.resume("last", **house.settings()), pause_s=1.0)
    asked = [event for event in house.story().events if isinstance(event, HumanAsked)]
    assert [event.recalled for event in asked] == [False, True, True]
    answers = PendingQuestions(house.journal)
    assert [question.node for question in answers.questions("last")] == ["sure"]
    assert not answers.give(answers.question("last", "sure"), True)
    assert house.resume(flow).outputs == {"a": True}
    events = list(house.story().events)
    (answered,) = (event for event in events if isinstance(event, HumanAnswered))
    last = [event for event in events if isinstance(event, HumanAsked)][-1]
    assert (answered.at_s, answered.recalled) == (last.at_s, False)


def test_whoever_takes_a_run_and_dies_leaves_each_letter_as_it_was() -> None:
    house, flow = (
        House(),
        loads('  sure: {ask: "Sure?"}\n  slow: {ask: "Slow?"}', 'a: "{{ sure }}"'),
    )
    run = house.left(flow, 1.0).run
    letters = [
        Letter("answer", NodeId("sure"), "yes"),
        Letter("cancel", NodeId("slow"), "nobody knows"),
    ]
    for letter in letters:
        house.journal.send(run, letter)
    for _ in range(3):
        claim_run(house.journal, "last", unit=flow.unit).release()
    claim = house.journal.claim(run)
    assert list(house.journal.letters(run)) == letters
    claim.release()
    result = house.resume(flow)
    assert {node: outcome.status for node, outcome in result.outcomes.items()} == {
        "sure": "succeeded",
        "slow": "cancelled",
    }
    assert not house.journal.letters(run)


def test_a_run_under_way_takes_letters() -> None:
    house, flow = House(), loads('  sure: {ask: "Sure?", schema: boolean}', 'a: "{{ sure }}"')

    def start() -> FlowRun:
        run = flow.start({}, **house.settings())
        house.journal.send(run.id, Letter("answer", NodeId("sure"), True))
        return run

    assert house.wait(start).outputs == {"a": True}


def test_what_failed_is_tried_again() -> None:
    house, flow = House(failing), loads(NOTES, 'a: "{{ best }}"')
    assert house.run(flow).status == "failed"
    house.script, house.asked = slow, []
    assert house.resume(flow).outputs == {"a": "<best of 4>"}
    assert len(house.asked) == 5


def test_what_has_succeeded_is_not_resumed() -> None:
    house, flow = House(), loads("  a: {value: 1}")
    run = house.run(flow).run
    with pytest.raises(InputError, match="has succeeded"):
        house.resume(flow)
    house.journal.claim(run).release()  # it was given back


def test_one_process_has_a_run() -> None:
    house, flow = House(slow), loads(NOTES, 'a: "{{ best }}"')
    run = house.left(flow, 0.5).run
    claim = house.journal.claim(run)
    with pytest.raises(RunBusy):
        house.resume(flow)
    claim.release()
    assert house.resume(flow).ok


def test_inputs_and_settings_come_from_the_record() -> None:
    nodes = '  a: {model: small, prompt: "{{ topic }}", temperature: 1}'
    house, flow = House(slow), loads(nodes)
    house.left(
        flow, 0.5, inputs={"topic": "tea"}, concurrency=3, seed=5, max_nodes=90, limits={"small": 2}
    )
    taken = claim_run(house.journal, "last", unit=flow.unit)
    taken.release()
    assert taken.settings == {
        "concurrency": 3,
        "max_nodes": 90,
        "seed": 5,
        "limits": {"small": 2},
    }
    assert taken.inputs == {"topic": "tea"}
    assert house.resume(flow).outputs == {"a": "<tea>"}


def test_a_changed_workflow_is_refused_and_taken_when_it_is_accepted() -> None:
    nodes = """\
  one: {model: small, prompt: "one"}
  two: {model: small, prompt: "two"}
  both: {model: small, prompt: "{{ one }} {{ two }}"}
  end: {ask: "Well?"}"""
    house, flow = House(), loads(nodes, 'a: "{{ both }} {{ end }}"')
    house.left(flow, 1.0)
    changed = loads(nodes.replace('"two"', '"other"'), 'a: "{{ both }} {{ end }}"')
    with pytest.raises(WorkflowChanged) as refused:
        house.resume(changed)
    said = {node.node: (node.verdict, node.fate) for node in refused.value.changes.nodes}
    assert said == {
        "one": ("unchanged", "kept"),
        "two": ("changed", "runs again"),
        "both": ("unchanged", "kept while its inputs stay the same"),
        "end": ("unchanged", ""),
    }
    assert any(line.startswith("+") and "other" in line for line in refused.value.changes.lines)
    house.asked = []
    result = house.resume(changed, {"end": "so"}, accept_changes=True)
    assert result.outputs == {"a": "<<one> <other>> so"}
    assert house.asked == ["other", "<one> <other>"]


def test_what_a_changed_node_appends_is_not_recalled() -> None:
    """Samples have ids of their own, and no definition but that of their node."""
    nodes = '  a: {model: small, prompt: "one", samples: 2}\n  end: {ask: "Well?", after: a}'
    house, flow = House(), loads(nodes)
    house.left(flow, 1.0)
    house.asked = []
    changed = loads(nodes.replace('"one"', '"two"'))
    result = house.resume(changed, {"end": "so"}, accept_changes=True)
    assert result.outputs == {"a": ["<two>", "<two>"]}
    assert house.asked == ["two", "two"]


def test_a_call_that_nobody_knows_the_end_of_is_not_made_again() -> None:
    till = Till()
    till.house.left(till.flow, 1.0)
    assert till.ledger == [7]
    result = till.house.resume(till.flow)
    assert "EffectUnknown" in result.missing["a"]
    assert till.ledger == [7]
    word = Confirmation("done", "paid by hand")
    done = till.house.resume(till.flow, confirmed={"a": word})
    assert done.outputs == {"a": "paid by hand"}
    assert till.ledger == [7]


@pytest.mark.parametrize("hangs", [False, True])
def test_a_call_that_may_have_acted_is_replayed_as_it_was_refused(hangs: bool) -> None:
    async def search(query: str) -> str:
        if hangs:
            await asyncio.sleep(60.0)
        raise ToolRaised(f"the line broke after {query}")

    house, flow = House(search=search), loads("  a: {tool: search, with: {query: tea}}")
    house.effect = "once"
    house.left(flow, 1.0)
    told = replay(house.story(), flow.unit)
    assert told.ok, told.report()
    result = house.resume(flow)
    assert "EffectUnknown" in result.missing["a"]
    told = replay(house.story(), flow.unit)
    assert told.ok, told.report()
    assert told.identical == 1
    word = Confirmation("done", ["a river"])
    assert house.resume(flow, confirmed={"a": word}).outputs == {"a": ["a river"]}
    told = replay(house.story(), flow.unit)
    assert told.ok, told.report()


class Till:
    """A workflow that pays, with a tool that must not be called twice and hangs the first time."""

    def __init__(self) -> None:
        self.ledger: list[int] = []
        self.flow = loads("  a: {tool: search, with: {amount: 7}}")
        self.house = House(search=self.pay)
        self.house.effect = "once"

    async def pay(self, amount: int) -> str:
        self.ledger.append(amount)
        await asyncio.sleep(5.0 if len(self.ledger) == 1 else 0.0)
        return "paid"


def test_a_default_that_is_no_list_stands_in_for_a_map_in_later_parts_too() -> None:
    def search(query: str) -> str:
        raise ToolRaised(f"no {query}")

    nodes = """\
  a: {map: [1], as: it, default: null, do: {tool: search, with: {query: "{{ it }}"}}}
  end: {ask: "Well?"}"""
    house, flow = House(search=search), loads(nodes, 'a: "{{ a }} {{ end }}"')
    house.left(flow, 1.0)
    assert house.resume(flow, {"end": "so"}).outputs == {"a": "null so"}


def test_a_run_is_found_by_the_beginning_of_its_id() -> None:
    house = House()
    for topic in ("tea", "salt"):
        house.run(loads("  a: {value: '{{ topic }}'}"), inputs={"topic": topic})
    latest, first = (summary.run for summary in house.journal.runs())
    assert find_run(house.journal, "last") == latest
    assert find_run(house.journal, first[:-3]) == first
    with pytest.raises(UnknownReference, match="2 runs begin"):
        find_run(house.journal, "case")
    with pytest.raises(UnknownReference, match="no run"):
        find_run(house.journal, "nothing")
    with pytest.raises(UnknownReference, match="no runs"):
        find_run(House().journal, "last")


def test_the_same_inputs_again_are_another_run() -> None:
    house, flow = House(), loads("  a: {value: 1}")
    runs = {house.run(flow).run for _ in range(20)}
    assert len(runs) == 20


def test_the_budget_of_the_last_part_is_that_of_the_next() -> None:
    house = House()
    flow = weft.Flow("b", models={"small": house.settings()["models"]["small"]})
    items = flow.map(
        list(range(40)), lambda i: flow.model("small", f"{i}"), mode="best_effort", width=1
    )
    flow.output(items=items)
    done = [len(house.run(flow, budget={"tokens": 20})["items"])]
    for budget in ({"tokens": 60}, None, {"tokens": 10_000}):
        done.append(len(house.resume(flow, budget=budget)["items"]))
    assert done[0] < done[1] == done[2] < done[3] == 40
    assert len(set(house.asked)) == 40
    assert not replay(house.story(), flow.unit).differences
