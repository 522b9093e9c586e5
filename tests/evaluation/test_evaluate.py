"""An evaluation is one run: seeded, bounded, resumed, and the same when it is read again."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.evaluation.flows import QA, answering, rows, sums_folder
from weft.errors import BuildError, InputError, SourceError
from weft.evaluation.evaluate import read_result
from weft.testing import FakeModel


def evaluated(model: FakeModel, count: int = 6, **options: Any) -> weft.EvaluationResult:
    flow = weft.loads(QA)
    return weft.evaluate_sync(flow, rows(count), "exact", models={"small": model}, **options)


def test_scores_failures_and_usage_of_cases() -> None:
    result = evaluated(answering(wrong=[1], fails=[2]), replicates=2)
    assert [case.case for case in result.cases] == [f"{n}" for n in range(1, 7) for _ in "12"]
    assert result.counts() == {"scored": 10, "failed": 2, "unscored": 0, "unfinished": 0}
    assert result.score == pytest.approx(4 / 6)
    assert result.means()["2"] == result.means()["3"] == 0
    failed = result.cases[4]
    assert failed.status == "failed"
    assert failed.reason.startswith("answer: ModelRequestError")
    assert result.case_usage.requests == 12
    assert result.case_usage.tokens == sum(case.usage.tokens for case in result.cases)
    assert result.finished
    assert result.summary().interval.low < result.score < result.summary().interval.high


def test_a_replicate_of_a_case_has_the_same_seed_whatever_else_is_evaluated() -> None:
    def seeds(**options: Any) -> dict[str, list[int | None]]:
        model = answering()
        evaluated(model, **options)
        found: dict[str, list[int | None]] = {}
        for request in model.requests:
            found.setdefault(request.messages[-1].content, []).append(request.sampling.seed)
        return found

    one, more = seeds(count=3, replicates=2), seeds(count=5, replicates=3, slots=1)
    assert len({seed for each in more.values() for seed in each}) == 15
    assert all(set(one[text]) < set(more[text]) for text in one)


def test_seeds_differ_between_nodes_and_between_items_but_not_from_run_to_run() -> None:
    text = """\
name: votes
inputs: {question: string}
models: {small: {use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}}
nodes:
  votes: {map: "{{ [1, 2, 3] }}", do: {model: small, prompt: "{{ question }}"}}
  more: {model: small, prompt: "{{ question }}", samples: 2}
  own: {model: small, prompt: "{{ question }}", seed: 7}
outputs: {answer: "{{ votes + more + [own] }}"}
"""
    found = []
    for limit in (1, 2):
        model = FakeModel(["x"])
        data = [{"question": "q", "expected": "x"}, {"question": "r", "expected": "x"}]
        weft.evaluate_sync(weft.loads(text), data, "exact", limit=limit, models={"small": model})
        asked = [each for each in model.requests if each.messages[-1].content == "q"]
        found.append(sorted(each.sampling.seed or 0 for each in asked))
    assert found[0] == found[1]
    assert len(set(found[0])) == 6
    assert 7 in found[0]


def test_at_most_so_many_cases_run_at_once() -> None:
    running: list[str] = []
    most: list[int] = []

    async def busy(question: str) -> str:
        running.append(question)
        most.append(len(running))
        for _ in range(5):
            await asyncio.sleep(0)
        running.remove(question)
        return question

    flow = weft.Flow("busy")
    flow.output(answer=flow.call(busy, question=flow.input("question", str)))
    weft.evaluate_sync(flow, rows(6), "f1", slots=2, durability="none")
    assert max(most) == 2


def test_more_errors_than_allowed_end_the_run_which_can_be_resumed(tmp_path: Path) -> None:
    place = str(tmp_path / "runs.sqlite")
    first = answering(fails=range(100))
    result = evaluated(first, 100, slots=1, max_errors=2, journal=place, run="capped")
    assert not result.finished
    assert result.counts()["failed"] in (3, 4)
    assert result.counts()["unfinished"] >= 96
    again = evaluated(answering(), 100, journal=place, resume="capped")
    assert again.finished
    assert again.run == "capped"
    assert again.score == 1.0, "what had failed is tried again"


def test_an_evaluation_in_python_is_resumed_and_asks_nothing_twice(tmp_path: Path) -> None:
    place, asked = str(tmp_path / "runs.sqlite"), []

    def script(request: Any) -> str:
        text = request.messages[-1].content
        asked.append(text)
        return text.replace("plain: q", "a")

    model = FakeModel(script)
    budget = {"tokens": 12}
    part = evaluated(model, 20, slots=2, budget=budget, journal=place, run="part")
    assert not part.finished
    done = [case.case for case in part.cases if case.status == "scored"]
    assert 0 < len(done) < 20
    whole = evaluated(model, 20, budget={"tokens": 10_000}, journal=place, resume="part")
    assert whole.finished
    assert whole.score == 1.0
    assert len(asked) - 20 <= 2, "but for calls under way when the budget ended"
    assert read_result("part", journal=place).cases == whole.cases


def test_a_recorded_evaluation_reads_as_it_was_and_is_rescored_without_a_call(
    tmp_path: Path,
) -> None:
    place, model = str(tmp_path / "runs.sqlite"), answering(wrong=[0])
    result = evaluated(model, journal=place, run="kept", replicates=2)
    calls = len(model.requests)
    read = read_result("kept", journal=place)
    assert read == result
    again = read_result("kept", journal=place, metric={"words": "f1", "same": "exact"})
    assert again.metrics == ("words", "same")
    assert again.means("same") == result.means("exact")
    assert len(model.requests) == calls
    with pytest.raises(BuildError, match="asks a model"):
        read_result("kept", journal=place, metric="judge:vllm:big")


def test_metrics_in_files_see_cases_and_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sums_folder(tmp_path))
    monkeypatch.setenv("WEFT_TEST_WRONG", "2")
    flow = weft.load("sums.yaml")
    metrics = {
        "half": "./functions.py:halved",
        "steps": "./functions.py:speed",
        "bad": "./functions.py:broken",
    }
    result = weft.evaluate_sync(flow, "sums.csv", metrics, journal="runs.sqlite")
    assert result.means("half") == {**dict.fromkeys("13456", 1.0), "2": 0.5}
    assert result.cases[1].scores["half"].feedback == "case 2"
    assert result.cases[1].scores["half"].parts == {"right": 0.0}
    assert set(result.means("steps").values()) == {2.0}, "the call, and the outputs"
    assert result.summary("bad").cases == 0
    assert math.isnan(result.summary("bad").interval.mean)
    assert "no such scale" in result.cases[0].unscored["bad"]
    assert result.counts()["scored"] == 6, "another metric scored it"


ENVIRONMENT = """\
name: desk
inputs: {task: string}
nodes:
  machine: {call: "./desk.py:machine", with: {task: "{{ task }}"}}
  act: {call: "./desk.py:act", with: {machine: "{{ machine }}"}, default: null}
  solved: {call: "./desk.py:solved", with: {machine: "{{ machine }}", done: "{{ act }}"}}
  shred: {call: "./desk.py:shred", with: {machine: "{{ machine }}"}, after: solved}
outputs: {done: "{{ act }}"}
evaluation: {prepare: machine, check: solved, tear_down: shred}
"""
DESK = """\
shredded = []

def fails(where, task):
    if task == where:
        raise RuntimeError(f"{where} broke")

def machine(task: str) -> str:
    fails("machine", task)
    return task

def act(machine: str) -> str:
    fails("act", machine)
    return machine.upper()

def solved(machine: str, done: str | None):
    fails("solved", machine)
    return {"value": float(done is not None), "feedback": machine}

def shred(machine: str) -> None:
    fails("shred", machine)
"""


def test_a_broken_environment_is_no_wrong_answer(tmp_path: Path) -> None:
    (tmp_path / "desk.yaml").write_text(ENVIRONMENT, encoding="utf-8")
    (tmp_path / "desk.py").write_text(DESK, encoding="utf-8")
    data = [{"id": name, "task": name} for name in ("fine", "machine", "act", "solved", "shred")]
    flow = weft.load(tmp_path / "desk.yaml")
    result = weft.evaluate_sync(flow, data, durability="none")
    assert result.main == "check"
    statuses = {case.case: case.status for case in result.cases}
    assert statuses == {
        "fine": "scored",
        "machine": "unscored",
        "act": "scored",
        "solved": "unscored",
        "shred": "unscored",
    }
    assert dict(result.means()) == {"fine": 1.0, "act": 0.0}
    assert "machine broke" in result.cases[1].reason
    with pytest.raises(BuildError, match="there is no node `desk`"):
        weft.evaluate_sync(flow, data, prepare="desk")


def test_what_is_wrong_is_said_before_anything_runs() -> None:
    flow, model = weft.loads(QA), answering()
    for options, said in (
        ({"metric": "exact"}, "has no data"),
        ({"data": [], "metric": "exact"}, "no case"),
        ({"data": rows(1)}, "there is no metric"),
        ({"data": [{"text": "q"}], "metric": "exact"}, "its columns: text"),
        ({"data": [{"inputs": {"question": 3}}], "metric": "exact"}, "`question`"),
        ({"data": rows(1), "metric": "exact", "replicates": 0}, "replicates is 0"),
        ({"data": rows(1), "metric": "exact", "colour": 3}, "colour"),
        ({"data": rows(1), "metric": "exact", "split": "test"}, "no split"),
    ):
        with pytest.raises((BuildError, InputError), match=said):
            weft.evaluate_sync(flow, models={"small": model}, **options)
    assert not model.requests


def test_the_workflow_says_how_it_is_evaluated() -> None:
    text = QA + (
        "evaluation:\n"
        "  data:\n    file: ./rows.py:rows\n    inputs: {question: '{{ case.q }}'}\n"
        "    expected: '{{ case.a }}'\n"
        "  metrics: {near: {use: f1, output: answer}}\n  replicates: 2\n  limit: 3\n"
    )
    flow = weft.loads(text)
    data = [{"q": f"q{n}", "a": f"a{n}"} for n in range(9)]
    result = weft.evaluate_sync(flow, data, models={"small": answering(wrong=[2])})
    assert (result.main, result.replicates, len(result.cases)) == ("near", 2, 6)
    assert result.score == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("data: {file: a.csv, inputs: {qestion: x}}", "there is no input `qestion`"),
        ("metrics: {a: {use: exact, output: anser}}", "there is no output `anser`"),
        ("metrics: {a: {use: judge, model: smal}}", "there is no model `smal`"),
        ("tear_down: answr", "there is no node `answr`"),
        ("splt: dev", "splt"),
    ],
)
def test_a_wrong_name_in_the_workflows_evaluation_is_refused_with_its_place(
    said: str, line: str
) -> None:
    with pytest.raises(SourceError, match=line) as caught:
        weft.loads(f"{QA}evaluation:\n  {said}\n")
    assert caught.value.line == QA.count("\n") + 2


def test_limits_of_the_workflow_are_those_of_a_case() -> None:
    limited = QA.replace("nodes:", "run: {budget: {tokens: 1}, deadline: 1h}\nnodes:")
    model = answering()
    result = weft.evaluate_sync(weft.loads(limited), rows(3), "exact", models={"small": model})
    assert len(model.requests) == 3, "one case's budget is not another's"
    assert all(case.status != "unfinished" for case in result.cases)
