"""`hypotheses`: diagnosis, a rewrite for each, restart, field orders, hostile answers, calls."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.optimisation.prompt_program import (
    BETTER,
    TRAP,
    PromptContext,
    block_of,
    prompt_option,
    state_of,
    usual_gains,
)
from weft.optimisation.candidates import Candidate, Proposal, SearchState
from weft.optimisation.options import AS_IT_IS
from weft.optimisation.propose.diagnosis import LABELS, Hypothesis, read_hypotheses
from weft.optimisation.propose.hypotheses import Hypotheses

PLAIN = "Colour of {{ thing }} by {{ facts }}?"


class Proposer:
    """Answers a diagnosis with these hypotheses, and rewrites with the prompt of the label."""

    def __init__(self, hypotheses: Any, prompts: dict[str, Any] | None = None) -> None:
        self.hypotheses, self.prompts = hypotheses, prompts or {}
        self.diagnosed: list[str] = []
        self.rewritten: list[str] = []

    def __call__(self, question: str, attempt: int) -> Any:
        del attempt
        if "Labels:" in question:
            self.diagnosed.append(question)
            return self.hypotheses
        self.rewritten.append(question)
        label = question.partition("\nHypothesis: ")[2].partition(":")[0]
        return {"why": f"no {label}", "prompt": self.prompts.get(label)}


def told(*named: tuple[str, str]) -> dict[str, Any]:
    return {"hypotheses": [{"label": a, "node": b, "reason": f"{a}!"} for a, b in named]}


def later(own: PromptContext, blocks: int = 5) -> SearchState:
    """A state after the first proposals, in which only the baseline was measured."""
    state = state_of(own)
    for _ in range(blocks):
        state = block_of(state, {state.baseline: [0.0]})
    return state


def proposal(own: PromptContext, state: SearchState, **options: Any) -> Proposal:
    return asyncio.run(Hypotheses(own, state.knobs, **options).propose(state))


def test_each_hypothesis_has_a_rewrite_and_the_best_that_grows_is_proposed() -> None:
    def gains(prompt: str, _: list[str]) -> float:
        return 0.5 * ("briefly" in prompt) + float("one word" in prompt)

    answer = Proposer(
        told(("length", "answer"), ("format", "answer"), ("ambiguity", "facts")),
        {"length": f"{PLAIN} briefly", "format": BETTER, "ambiguity": "All of {{ thing }}"},
    )
    own = PromptContext(gains, answer=answer)
    state = later(own)
    made = proposal(own, state, restart=0)
    assert len(answer.diagnosed) == 1
    assert len(answer.rewritten) == 3
    (child,) = made.candidates
    ((knob, option),) = child.edits(state.baseline).items()
    assert knob == "answer.prompt"
    assert BETTER in option.edits  # type: ignore[attr-defined]
    assert option.label == "format: another prompt at answer"  # type: ignore[attr-defined]
    assert option.why == "format: format!; no format"  # type: ignore[attr-defined]
    ran: dict[Candidate, list[str]] = {}
    for candidate, case in own.observed:
        ran.setdefault(candidate, []).append(case)
    assert len(ran) == 4
    assert len({tuple(cases) for cases in ran.values()}) == 1


def test_the_questions_of_one_batch_do_not_know_one_another() -> None:
    answer = Proposer(told(("length", "answer"), ("format", "answer")))
    own = PromptContext(lambda *_: 0.0, answer=answer)
    proposal(own, later(own), restart=0, attempts=1)
    first, second = answer.rewritten
    assert "format!" not in first
    assert "length!" not in second
    assert first.replace("length", "format") == second


def test_only_failing_cases_are_diagnosed() -> None:
    answer = Proposer(told(("length", "answer")))
    own = PromptContext(answer=answer)
    proposal(own, later(own), restart=0, attempts=1, cases=12)
    assert own.observed
    assert "Score: 0" in answer.diagnosed[0]
    assert "Score: 1" not in answer.diagnosed[0]
    perfect = PromptContext(lambda *_: 1.0, answer=answer)
    assert not proposal(perfect, later(perfect)).candidates
    assert not perfect.asked


def test_what_does_not_grow_is_not_proposed() -> None:
    answer = Proposer(told(("format", "answer")), {"format": BETTER})
    for gains in (lambda *_: 0.4, lambda prompt, _: 0.9 * ("one word" not in prompt)):
        own = PromptContext(gains, answer=answer)
        assert not proposal(own, later(own), restart=0).candidates


def test_field_order_is_the_edit_of_its_knob_and_takes_no_question() -> None:
    answer = Proposer(told(("field_order", "answer")))
    own = PromptContext(lambda _, fields: float(fields[0] == "why"), answer=answer)
    state = later(own)
    (child,) = proposal(own, state, restart=0).candidates
    ((knob, option),) = child.edits(state.baseline).items()
    assert knob == "answer.schema_order"
    assert option in state.knobs[knob]
    assert option.why == "field_order: field_order!"  # type: ignore[attr-defined]
    assert option.label.startswith("field_order")  # type: ignore[attr-defined]
    assert not answer.rewritten
    back = PromptContext(lambda _, fields: float(fields[0] == "answer"), answer=answer)
    best = child.replace("answer.prompt", prompt_option("answer", PLAIN))
    turned = SearchState(state.baseline, state.knobs, state.blocks, best)
    (found,) = proposal(back, turned, restart=0, epsilon=0).candidates
    assert found == best.replace(knob, AS_IT_IS)


def test_an_order_that_was_measured_is_not_tried_again() -> None:
    answer = Proposer(told(("field_order", "answer")))
    own = PromptContext(lambda *_: 0.0, answer=answer)
    state = later(own)
    turned = state.baseline.replace("answer.schema_order", state.knobs["answer.schema_order"][1])
    state = block_of(state, {state.baseline: [0.0], turned: [0.0]})
    made = Hypotheses(own, state.knobs, restart=0, epsilon=0, attempts=1)
    assert not asyncio.run(made.propose(state)).candidates
    assert {candidate for candidate, _ in own.observed} == {state.baseline}
    assert made.refused == 1


def test_field_order_without_the_knob_is_a_rewrite() -> None:
    answer = Proposer(told(("field_order", "answer")), {"field_order": PLAIN})
    own = PromptContext(lambda prompt, _: float(TRAP not in prompt), answer=answer)
    state = later(own)
    knobs = {name: found for name, found in state.knobs.items() if "schema_order" not in name}
    bare = SearchState(state.baseline, knobs, state.blocks, state.best)
    (child,) = proposal(own, bare, restart=0).candidates
    assert list(child.edits(state.baseline)) == ["answer.prompt"]
    assert len(answer.rewritten) == 1


def is_bare(candidate: Candidate, baseline: Candidate) -> bool:
    texts = {knob: option.edits for knob, option in candidate.edits(baseline).items()}  # type: ignore[attr-defined]
    return (
        set(texts) == {"answer.prompt", "facts.prompt"}
        and '"{{ thing }}\\n{{ facts }}"' in texts["answer.prompt"]
        and '"{{ thing }}"' in texts["facts.prompt"]
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("attempts", [1, 2])
def test_the_first_two_proposals_restart_once_from_the_bare_program(
    seed: int, attempts: int
) -> None:
    own = PromptContext(lambda prompt, _: float(TRAP not in prompt))  # nobody to ask
    own.seed = seed
    state = state_of(own)
    made = Hypotheses(own, state.knobs, restart=1e-9, attempts=attempts)
    first = asyncio.run(made.propose(state)).candidates
    second = asyncio.run(made.propose(block_of(state, {state.baseline: [0.0]}))).candidates
    found = [*first, *second]
    assert found
    assert all(is_bare(each, state.baseline) for each in found)
    (option, *_) = found[0].edits(state.baseline).values()
    assert option.label.startswith("restart")  # type: ignore[attr-defined]


def test_a_restart_goes_on_with_rewrites_of_the_bare_prompts() -> None:
    answer = Proposer(told(("format", "answer")), {"format": BETTER})
    own = PromptContext(lambda prompt, _: float("one word" in prompt), answer=answer)
    (child,) = proposal(own, later(own), restart=1.0).candidates
    edits = child.edits(state_of(own).baseline)
    assert BETTER in edits["answer.prompt"].edits  # type: ignore[attr-defined]
    assert '"{{ thing }}"' in edits["facts.prompt"].edits  # type: ignore[attr-defined]
    assert "Its prompt now:\n~~~\n{{ thing }}\n{{ facts }}\n~~~" in answer.rewritten[0]


def test_a_bare_program_that_is_worse_is_not_proposed() -> None:
    own = PromptContext(lambda prompt, _: 0.6 * (TRAP in prompt))
    for blocks in range(4):
        assert not proposal(own, later(own, blocks), restart=1.0).candidates


def test_later_restarts_come_with_their_chance() -> None:
    shares = {}
    for chance in (0.0, 0.3, 1.0):
        bare = 0
        own = PromptContext(lambda *_: 0.0)
        state = later(own)
        for seed in range(40):
            own.seed, own.observed = seed, []
            proposal(own, state, restart=chance, attempts=1, cases=1)
            bare += any(is_bare(candidate, state.baseline) for candidate, _ in own.observed)
        shares[chance] = bare / 40
    assert shares[0.0] == 0
    assert 0.1 < shares[0.3] < 0.5
    assert shares[1.0] == 1


def test_the_parent_is_the_best_and_now_and_then_another_one() -> None:
    own = PromptContext(lambda *_: 0.0)
    state = state_of(own)
    best = state.baseline.replace("answer.prompt", prompt_option("answer", BETTER))
    state = SearchState(state.baseline, state.knobs, [], best)
    for _ in range(3):
        state = block_of(state, {state.baseline: [0.0], best: [1.0]})
    for epsilon, least, most in ((0.0, 40, 40), (0.3, 20, 36), (1.0, 0, 0)):
        parents = 0
        for seed in range(40):
            own.seed, own.observed = seed, []
            proposal(own, state, epsilon=epsilon, restart=0, attempts=1, cases=1)
            parents += own.observed[0][0] == best
        assert least <= parents <= most


HOSTILE: list[tuple[Any, int]] = [
    (None, 1),
    ("text", 1),
    ([{"label": "format"}], 1),
    ({"hypotheses": {"label": "format"}}, 1),
    ({"hypotheses": []}, 0),
    ({"hypotheses": [None, 7, []]}, 3),
    (told(("sabotage", "answer")), 1),
    (told(("format", "nowhere")), 1),
    (told(("format", "../answer")), 1),
    ({"hypotheses": [{"label": ["format"], "node": {"a": 1}, "reason": 3}]}, 1),
    (told(*[("sabotage", "answer")] * 99), 3),
]


@pytest.mark.parametrize(("answer", "dropped"), HOSTILE)
def test_a_hostile_diagnosis_is_dropped_and_counted(answer: Any, dropped: int) -> None:
    own = PromptContext(lambda *_: 0.0, answer=Proposer(answer))
    state = later(own)
    made = Hypotheses(own, state.knobs, restart=0, attempts=1)
    found = asyncio.run(made.propose(state))
    assert not found.candidates
    assert made.refused == dropped
    assert found.calls == own.calls <= made.calls


@pytest.mark.parametrize(
    "prompt",
    [
        None,
        7,
        "no reference",
        "{{ thing }}{{ facts }}{% if 1 %}",
        "{{ thing }}{{ facts }}" + "x" * 9000,
    ],
)
def test_a_hostile_rewrite_is_dropped_and_counted(prompt: Any) -> None:
    answer = Proposer(told(("format", "answer"), ("length", "answer")), {"format": prompt})
    own = PromptContext(lambda *_: 0.0, answer=answer)
    state = later(own)
    made = Hypotheses(own, state.knobs, restart=0, attempts=1)
    assert not asyncio.run(made.propose(state)).candidates
    assert made.refused == 2


def test_a_huge_reason_is_cut_and_asked_of_once() -> None:
    each = {"label": "format", "node": "answer", "reason": "a\n" + "b" * 99_999}
    found, dropped = read_hypotheses({"hypotheses": [each] * 3}, {"answer": None}, 3)
    assert dropped == 0
    assert found == [Hypothesis("format", "answer", "a " + "b" * 298)]
    assert read_hypotheses({"hypotheses": [{**each, "reason": 7}]}, {"answer": None}, 3)[0] == [
        Hypothesis("format", "answer", "")
    ]


def test_the_schema_names_labels_and_nodes() -> None:
    own = PromptContext(lambda *_: 0.0, answer=Proposer(None))
    proposal(own, later(own), restart=0, attempts=1, count=2)
    (schema,) = own.schemas
    told_of = schema["properties"]["hypotheses"]
    assert told_of["maxItems"] == 2
    assert told_of["items"]["properties"]["label"]["enum"] == list(LABELS)
    assert set(told_of["items"]["properties"]["node"]["enum"]) == {"answer", "facts"}


@settings(deadline=None, max_examples=25)
@given(
    most_calls=st.integers(0, 80),
    count=st.integers(1, 4),
    attempts=st.integers(1, 3),
    blocks=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_calls_are_at_most_what_it_says_and_it_repeats_itself(
    most_calls: int, count: int, attempts: int, blocks: int, seed: int
) -> None:
    def once() -> tuple[Proposal, int]:
        def answer(question: str, attempt: int) -> Any:
            random = Random(f"{seed}{attempt}{question}")
            labels = random.choices([*LABELS, "none"], k=4)
            nodes = random.choices(["facts", "answer", "none"], k=4)
            made: Any = told(*zip(labels, nodes, strict=True))
            texts = [BETTER, PLAIN, "no", "Facts: {{ thing }}"]
            return made if "Labels:" in question else {"prompt": random.choice(texts)}

        own = PromptContext(usual_gains, answer=answer)
        own.seed = seed
        state = later(own, blocks)
        made = Hypotheses(
            own, state.knobs, count=count, attempts=attempts, most_calls=most_calls, restart=0.5
        )
        found = asyncio.run(made.propose(state))
        asked = len(own.asked)
        assert asked <= attempts * (1 + count)
        assert own.calls == found.calls <= asked + most_calls <= made.calls
        return found, made.refused

    assert once() == once()


def test_the_order_in_which_runs_end_changes_nothing() -> None:
    answer = Proposer(
        told(("length", "answer"), ("format", "answer"), ("examples", "answer")),
        {label: f"{PLAIN} {label}" for label in ("length", "format", "examples")},
    )

    def gains(prompt: str, _: list[str]) -> float:
        return float(any(label in prompt for label in ("length", "format", "examples")))

    found = []
    for delays in ((0, 1, 2, 3), (3, 2, 1, 0)):
        own = Delayed(gains, answer=answer)
        own.delays = list(delays)
        found.append(proposal(own, later(own), restart=0))
    assert found[0] == found[1]
    assert found[0].candidates


class Delayed(PromptContext):
    """Ends its runs after so many turns of the loop."""

    delays: list[int]

    async def observe(self, *given: Any, **named: Any) -> Any:
        for _ in range(self.delays.pop() if self.delays else 0):
            await asyncio.sleep(0)
        return await super().observe(*given, **named)
