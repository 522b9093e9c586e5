"""Candidates of a document score as evaluations of their workflows do, within the calls said."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from tests.optimisation.programs import ProgramWriter, function_model
from tests.optimisation.studies import flow, named, planted, rows
from weft.core.budget import Budget
from weft.core.ports.clock import SystemClock
from weft.evaluation.evaluate import program_of
from weft.optimisation.budget import StudyBudget, StudyLedger
from weft.optimisation.call_bound import call_bound
from weft.optimisation.candidate_flows import CandidateFlows
from weft.optimisation.candidates import Candidate, KnobOptions
from weft.optimisation.evaluator import DocumentEvaluator, RunSlots
from weft.optimisation.options import EditOption, baseline_of, knob_options
from weft.optimisation.record import StudyRecord
from weft.optimisation.space import declared_space, discovered_space
from weft.testing import FakeModel, Reply
from weft.workflow.runtime.models.factory import GivenModels, Models


def evaluator_of(
    workflow: Any, data: Any, metric: Any, models: dict[str, Any], *, replicates: int = 1
) -> tuple[DocumentEvaluator, weft.Dataset]:
    """An evaluator in memory, and its cases."""
    program = program_of(workflow.unit, data, metric, replicates=replicates)
    clock = SystemClock()
    made = DocumentEvaluator(
        CandidateFlows(program, 100),
        {case.id: case for case in program.data},
        StudyRecord(clock),
        StudyLedger(100_000, Budget(), lambda: 0.0),
        StudyBudget(100_000),
        GivenModels(models, Models()),
        RunSlots(),
        clock,
    )
    return made, program.data


def random_candidate(knobs: KnobOptions, random: Random) -> Candidate:
    return Candidate.of({name: random.choice(list(options)) for name, options in knobs.items()})


def by_words(case: Any, outputs: Any) -> float:
    """Some score between 0 and 1 of whatever was answered."""
    return (len(repr(sorted(outputs.items()))) * 7 % 101) / 100


def topics(workflow: Any, count: int) -> list[dict[str, Any]]:
    """Cases with the inputs of a workflow of `ProgramWriter`."""
    return [
        {"inputs": dict.fromkeys(workflow.inputs, f"topic {n}"), "id": f"{n}"} for n in range(count)
    ]


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), replicates=st.integers(1, 3))
def test_scores_are_those_of_evaluate_case_by_case(seed: int, replicates: int) -> None:
    """Random workflows and candidates; each of two candidates finds what the other has computed."""
    random = Random(seed)
    workflow = ProgramWriter(random).flow(5)
    models = dict.fromkeys(workflow.document.models, function_model(40))
    data = [
        {"inputs": dict.fromkeys(workflow.inputs, f"topic {n}"), "id": f"{n}"} for n in range(3)
    ]
    evaluator, cases = evaluator_of(workflow, data, by_words, models, replicates=replicates)
    knobs = knob_options(discovered_space(workflow.document))
    candidates = [baseline_of(knobs), random_candidate(knobs, random)]

    async def measured() -> list[Any]:
        with evaluator.step("search"):
            return [
                await evaluator.outcomes(each, [case.id for case in cases], replicates)
                for each in candidates
                if evaluator.flows.allowed(each)
            ]

    for candidate, found in zip(candidates, asyncio.run(measured()), strict=False):
        patched = evaluator.flows.of(candidate).flow
        fresh = weft.evaluate_sync(patched, data, by_words, replicates=replicates, models=models)
        assert [outcome.score for outcome in found] == pytest.approx(list(fresh.means().values()))
        usage = [case.usage for case in fresh.cases]
        assert sum(round(each.tokens * replicates) for each in found) == pytest.approx(
            sum(each.tokens for each in usage), abs=replicates * len(found)
        )


def test_judges_and_failures_count_as_in_an_evaluation() -> None:
    def answer(request: Any) -> Any:
        text = request.messages[-1].content
        if request.schema == {"enum": ["A", "B", "C"]}:
            return '"A"' if len(text) % 2 else '"B"'
        if "q3" in text:
            return Reply(error=weft.errors.ModelRequestError("refused"))
        return {"answer": text[-9:], "why": ""} if request.schema else text[-9:]

    model = FakeModel(answer)
    data = [{"question": f"q{n}", "expected": "x" * n, "id": f"{n}"} for n in range(6)]
    metric = {"quality": {"use": "judge", "model": "small"}}
    evaluator, cases = evaluator_of(flow(), data, metric, named(model))
    baseline = baseline_of(knob_options(declared_space(flow().document)))

    async def measured() -> Any:
        with evaluator.step("search"):
            return await evaluator.outcomes(baseline, [case.id for case in cases], 1)

    found = asyncio.run(measured())
    fresh = weft.evaluate_sync(flow(), data, metric, models=named(model))
    assert [each.score for each in found] == list(fresh.means().values())
    assert found[3].score == 0.0
    assert all(each.scored for each in found)


def test_what_no_metric_can_score_is_no_wrong_answer() -> None:
    def broken(case: Any, outputs: Any) -> float:
        if case["id"] == "q1":
            raise ValueError("no such scale")
        return 1.0

    evaluator, _ = evaluator_of(flow(), rows(4), broken, named(planted()))
    baseline = baseline_of(knob_options(declared_space(flow().document)))

    async def measured() -> Any:
        with evaluator.step("search"):
            return await evaluator.outcomes(baseline, ["q0", "q1"], 2)

    assert [(each.scored, each.score) for each in asyncio.run(measured())] == [
        (True, 1.0),
        (False, 0.0),
    ]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_run_makes_no_more_calls_than_were_needed(seed: int) -> None:
    random = Random(seed)
    workflow = ProgramWriter(random).flow(6)
    model = function_model(40)
    models = dict.fromkeys(workflow.document.models, model)
    data = [
        {"inputs": dict.fromkeys(workflow.inputs, f"topic {n}"), "id": f"{n}"} for n in range(2)
    ]
    evaluator, cases = evaluator_of(workflow, data, by_words, models)
    knobs, ids = knob_options(discovered_space(workflow.document)), [case.id for case in cases]

    async def measured() -> None:
        for _ in range(4):
            candidate = random_candidate(knobs, random)
            if not evaluator.flows.allowed(candidate):
                continue
            needed, before = evaluator.calls_needed(candidate, ids, 2), len(model.requests)
            with evaluator.step("search"):
                found = await evaluator.outcomes(candidate, ids, 2)
            made = len(model.requests) - before
            assert made == sum(outcome.calls for outcome in found) <= needed
            assert evaluator.calls_needed(candidate, ids, 2) == 0
            with evaluator.step("search"):
                again = await evaluator.outcomes(candidate, ids, 2)
            assert [each.score for each in again] == [each.score for each in found]
            assert not sum(each.calls for each in again)

    asyncio.run(measured())


def test_the_bound_counts_repairs_retries_samples_and_the_items_of_inputs() -> None:
    text = """\
name: bounds
inputs: {topics: {type: array, items: {type: string}}}
models: {m: {use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}}
nodes:
  one: {model: m, prompt: "a", retry: 2, schema: {type: object, properties: {x: {type: string}}}}
  many: {model: m, prompt: "b", samples: 5}
  each: {map: "{{ topics }}", as: topic, do: {model: m, prompt: "{{ topic }}"}}
  again: {loop: {model: m, prompt: "c"}, until: "{{ false }}", max: 3}
  on: {model: m, prompt: "d", retry_on: [TimeoutError]}
outputs: {one: "{{ one }}"}
"""
    unit = weft.loads(text).unit
    topics = {"topics": ["a", "b"]}
    assert call_bound(unit, topics) == 2 * 2 + 5 + 2 + 3 + 3
    assert call_bound(unit, topics, repetitions=True) == 2 * 2 + 3 * (5 + 2 + 3) + 3
    assert call_bound(unit, {}) is None


def test_candidates_draw_common_random_numbers() -> None:
    """Candidates whose documents differ elsewhere send equal seeds in the nodes that they share."""
    model = planted()
    evaluator, _ = evaluator_of(flow(), rows(8), "exact", named(model))
    knobs = knob_options(declared_space(flow().document))
    other = baseline_of(knobs).replace("answer.prompt", list(knobs["answer.prompt"])[1])
    assert isinstance(list(knobs["answer.prompt"])[1], EditOption)

    async def measured() -> None:
        for each in (baseline_of(knobs), other):
            with evaluator.step("search"):
                await evaluator.outcomes(each, ["q0", "q1"], 2)

    asyncio.run(measured())
    seeds: dict[bool, set[Any]] = {}
    for request in model.requests:
        if request.schema is not None:
            text = request.messages[-1].content
            seeds.setdefault(text.startswith("Think"), set()).add(request.sampling.seed)
    assert seeds[True] == seeds[False]
    assert len(seeds[True]) == 4
