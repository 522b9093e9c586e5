"""`reflect`: parents, batches as a gate, merges, hostile answers, calls, replay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from tests.optimisation.prompt_program import (
    BETTER,
    FLOW,
    GOLD,
    PromptContext,
    block_of,
    model,
    prompt_option,
    state_of,
    usual_gains,
)
from weft.core.ports import ModelRequest
from weft.optimisation.candidates import Candidate, Proposal, SearchState
from weft.optimisation.optimise import replay_study
from weft.optimisation.propose.reflect import Reflection
from weft.testing import FakeModel


def writes(prompt: Any) -> Callable[[str, int], Any]:
    """Writes this prompt for the node `answer`, and nothing usable for the other one."""
    return lambda question, _: {
        "why": "clear",
        "prompt": prompt if "Step answer" in question else 7,
    }


def proposal(own: PromptContext, state: SearchState | None = None, **options: Any) -> Proposal:
    state = state or state_of(own)
    return asyncio.run(Reflection(own, state.knobs, **options).propose(state))


def prompts(candidate: Candidate) -> dict[str, str]:
    return {
        name: option.read()[0].plain()["prompt"]  # type: ignore[attr-defined]
        for name, option in candidate.settings
        if name.endswith(".prompt") and option.read()  # type: ignore[attr-defined]
    }


def test_a_prompt_is_proposed_only_where_the_batch_grows() -> None:
    good = PromptContext(lambda prompt, _: float("one word" in prompt), answer=writes(BETTER))
    (child,) = proposal(good).candidates
    assert prompts(child) == {"answer.prompt": BETTER}
    (option,) = child.edits(state_of(good).baseline).values()
    assert option.why == "clear"  # type: ignore[attr-defined]
    assert len({case for _, case in good.observed}) <= 2 * 3
    for gains in (lambda *_: 0.5, lambda prompt, _: float("one word" not in prompt) / 2):
        same = PromptContext(gains, answer=writes(BETTER))
        assert not proposal(same).candidates


def test_the_child_runs_on_the_cases_of_its_parent() -> None:
    own = PromptContext(lambda *_: 0.0, answer=writes(BETTER))
    base = state_of(own).baseline
    assert not proposal(own, attempts=2).candidates
    ran = [case for candidate, case in own.observed if candidate == base]
    again = [case for candidate, case in own.observed if candidate != base]
    assert again
    assert again in (ran[:3], ran[3:])


def test_where_all_cases_are_perfect_nothing_is_asked() -> None:
    own = PromptContext(lambda *_: 1.0, answer=writes(BETTER))
    made = proposal(own)
    assert not made.candidates
    assert not own.asked
    assert own.calls == made.calls


def test_nodes_take_turns_and_the_question_shows_what_the_node_depends_on() -> None:
    own = PromptContext(lambda *_: 0.0, answer=writes("no reference"))
    state = state_of(own)
    for _ in range(2):
        proposal(own, state, attempts=1)
        state = block_of(state, {state.baseline: [0.0]})
    facts, answer = own.asked
    assert "Step facts. Its prompt now:\n~~~\nFacts of {{ thing }}\n~~~" in facts
    assert "Node answer" not in facts
    assert "Node facts" in answer
    assert "Node answer" in answer
    assert "Feedback" in answer
    assert (
        "placeholders exactly as they are, and write no others: {{ thing }}, {{ facts }}" in answer
    )


def measured_state(own: PromptContext) -> SearchState:
    """The two prompts each win a case, and the baseline none."""
    state = state_of(own)
    one = state.baseline.replace("answer.prompt", prompt_option("answer", BETTER))
    two = state.baseline.replace("facts.prompt", prompt_option("facts", "Two of {{ thing }}"))
    return block_of(state, {state.baseline: [0, 0], one: [1, 0], two: [0, 1]})


def test_the_parent_is_of_the_front() -> None:
    own = PromptContext(lambda *_: 0.0)
    state = measured_state(own)
    seen = set()
    for seed in range(20):
        own.seed, own.observed = seed, []
        proposal(own, state, attempts=1, merges=0)
        seen |= {candidate for candidate, _ in own.observed}
    assert seen == set(state.blocks[0]) - {state.baseline}


def test_a_merge_costs_no_call_and_there_are_so_many_at_most() -> None:
    own = PromptContext(lambda *_: 1.0)
    state = measured_state(own)
    made = Reflection(own, state.knobs, cases=1, attempts=1, merges=2)
    proposals = [asyncio.run(made.propose(state)) for _ in range(4)]
    found = [list(each.candidates) for each in proposals]
    assert [len(each) for each in found] == [1, 1, 0, 0]
    assert set(prompts(found[0][0])) == {"answer.prompt", "facts.prompt"}
    assert sum(each.calls for each in proposals) == own.calls
    assert not own.asked
    (known,) = found[0]
    after = block_of(state, {state.baseline: [0], known: [1]})
    assert not proposal(own, after).candidates


HOSTILE: list[Any] = [
    None,
    "text",
    [],
    {},
    {"why": "x", "prompt": 7},
    {"why": ["x"], "prompt": None},
    {"why": "x", "prompt": "no reference"},
    {"why": "x", "prompt": "{{ thing }} {{ facts }} {{ weft.secrets }}"},
    {"why": "x", "prompt": "{% for x in thing %}{{ thing }}{{ facts }}{% endfor %}"},
    {"why": "x", "prompt": "{{ thing }}{{ facts }}" + "x" * 9_000},
    {"why": "x", "prompt": "{{ thing }}{{ facts }}{# hidden #}"},
    {"why": "x", "prompt": "  "},
]


@pytest.mark.parametrize("answer", HOSTILE)
def test_what_is_no_prompt_for_the_node_is_dropped_and_counted(answer: Any) -> None:
    own = PromptContext(lambda *_: 0.0, answer=lambda *_: answer)
    state = state_of(own)
    made = Reflection(own, state.knobs, attempts=2)
    found = asyncio.run(made.propose(state))
    assert not found.candidates
    assert made.refused == 2
    assert found.calls <= made.calls


def test_a_long_reason_is_cut_to_a_line() -> None:
    answer = {"why": "a\n\x1b[31m" + "b" * 9_000, "prompt": BETTER}
    own = PromptContext(lambda prompt, _: float("one word" in prompt), answer=lambda *_: answer)
    (child,) = proposal(own).candidates
    (option,) = child.edits(state_of(own).baseline).values()
    assert len(option.why) <= 300  # type: ignore[attr-defined]
    assert "\n" not in option.why  # type: ignore[attr-defined]


def test_without_a_model_there_is_no_candidate() -> None:
    own = PromptContext(lambda *_: 0.0)
    assert not proposal(own).candidates
    no_knobs = Reflection(own, {"answer.model": ()})
    assert no_knobs.calls == 0
    assert asyncio.run(no_knobs.propose(state_of(own))) == Proposal([])


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 40),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 99),
)
def test_calls_are_at_most_what_it_says_and_it_repeats_itself(
    most_calls: int, cases: int, attempts: int, blocks: int, seed: int
) -> None:
    def once() -> Proposal:
        texts = [BETTER, "no", "Of {{ thing }} by {{ facts }}", "Facts: {{ thing }}"]
        own = PromptContext(
            answer=lambda *_: {"why": "", "prompt": Random(f"{seed}{own.calls}").choice(texts)}
        )
        own.seed = seed
        state = state_of(own)
        for _ in range(blocks):
            state = block_of(measured_state(own), {state.baseline: [0.0, 0.0]})
        made = Reflection(own, state.knobs, cases=cases, attempts=attempts, most_calls=most_calls)
        found = asyncio.run(made.propose(state))
        assert own.calls == found.calls <= made.calls - attempts  # one call a question here
        return found

    assert once() == once()


def test_by_default_two_runs_of_a_dear_case_are_paid_for() -> None:
    own = PromptContext()
    own.bound = lambda *_: 1_000  # type: ignore[method-assign]
    made = Reflection(own, state_of(own).knobs)
    assert made.calls == 2_000 + 2 * 3


def rows() -> list[dict[str, Any]]:
    splits = ("dev", "held_out", "dev", "train", "held_out")
    return [
        {"thing": thing, "expected": gold, "id": thing, "split": splits[n % len(splits)]}
        for n, (thing, gold) in enumerate(GOLD.items())
    ]


def writer(request: ModelRequest) -> Any:
    text = request.messages[-1].content
    if "hypotheses" in (request.schema or {}).get("properties", {}):
        told = [("format", "answer"), ("field_order", "answer"), ("length", "facts")]
        return {"hypotheses": [{"label": a, "node": b, "reason": "so"} for a, b in told]}
    prompt = BETTER if "Step answer" in text else "Few facts of {{ thing }}"
    return {"why": "clear", "prompt": prompt}


def study(programs: FakeModel, asked: FakeModel, **named: Any) -> weft.StudyResult:
    return weft.optimise_sync(
        weft.loads(FLOW),
        rows(),
        "exact",
        models={"small": programs},
        proposer_model=asked,
        **named,
    )


@pytest.mark.parametrize("name", ["reflect", "hypotheses"])
def test_a_study_finds_the_prompt_and_replays_and_resumes(name: str, tmp_path: Path) -> None:
    place = str(tmp_path / "runs.sqlite")
    options: dict[str, Any] = {"proposers": [name], "budget": 1_200}
    asked, programs = FakeModel(writer, model="writer"), model(usual_gains)
    found = study(programs, asked, journal=place, **options)
    assert any(BETTER in str(edit.edits) for edit in found.best.edits), found.verdict.why
    made = len(programs.requests), len(asked.requests)
    assert found.spent.calls == sum(made)
    again = asyncio.run(replay_study(found.run, weft.loads(FLOW), journal=place))
    assert (again.best, again.verdict, again.spend) == (found.best, found.verdict, found.spend)
    assert (len(programs.requests), len(asked.requests)) == made

    studies = list[Any]()

    def stops(request: ModelRequest) -> Any:
        """During the second question: of `hypotheses` one of three that are asked at once."""
        if len(asked.requests) == 2:
            studies[0].stop()
        return writer(request)

    asked, programs = FakeModel(stops, model="writer"), model(usual_gains)
    part = study(programs, asked, journal=place, watch=studies.append, **options)
    assert part.verdict.kind == "unfinished"
    assert 2 <= len(asked.requests) <= made[1]
    asked._script = writer  # type: ignore[assignment]
    whole = study(programs, asked, journal=place, resume=part.run)
    assert whole.best.edits_data == found.best.edits_data
    assert whole.verdict.kind == found.verdict.kind
    assert whole.spend == found.spend
    assert len(programs.requests) == made[0]
    assert len(asked.requests) == made[1] + 1  # the question that was not answered yet
