"""Proposers of demonstrations, of instructions, and of combinations by TPE."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.optimisation.propose.colours import GOLD, context, rows, state_of, study
from weft.core.ports import ModelRequest
from weft.optimisation.candidates import CaseOutcome, SearchState
from weft.optimisation.options import STRUCTURE, EditOption, baseline_of, patch_of
from weft.optimisation.propose.bootstrap import BootstrapDemonstrations
from weft.optimisation.propose.instruct import Instructions
from weft.optimisation.propose.rewrites import bare, rewritten
from weft.testing import FakeModel


def test_examples_that_help_are_found_from_runs_that_pass(tmp_path: Path) -> None:
    found = study([{"name": "bootstrap", "most": 4}], tmp_path)
    assert found.verdict.kind == "improved", found.verdict.why
    (edit,) = found.best.edits
    assert edit.knob == "answer.demonstrations"
    assert edit.why
    train = {row["thing"] for n, row in enumerate(rows()) if n % 5 == 3}
    shown = [each for data in edit.edits for each in data["demonstrations"]]
    assert {each["user"].removeprefix("Colour of ").rstrip("?") for each in shown} <= train
    assert all(
        GOLD[each["user"].removeprefix("Colour of ").rstrip("?")] == each["assistant"]
        for each in shown
    )


def test_bootstrap_asks_within_its_calls_and_again_the_same() -> None:
    proposals = []
    for _ in range(2):
        own = context()
        state = state_of(own)
        made = BootstrapDemonstrations(own, state.knobs, most_calls=7)
        proposal = asyncio.run(made.propose(state))
        assert own.calls == proposal.calls <= made.calls == 7
        proposals.append(proposal)
    assert proposals[0] == proposals[1]
    assert proposals[0].candidates


def test_examples_have_as_different_answers_as_there_are() -> None:
    own = context()
    state = state_of(own)
    made = BootstrapDemonstrations(own, state.knobs, most=3, count=20, labelled=False)
    sets = asyncio.run(made.propose(state)).candidates
    assert len(sets) > 3
    for candidate in sets:
        (edit,) = patch_of(candidate).edits
        shown = [each["assistant"] for each in edit.plain()["demonstrations"]]
        assert "grey" not in shown
        assert len(set(shown)) >= min(len(shown), 2), shown


def test_where_nothing_passes_the_expected_outputs_are_examples() -> None:
    own = context()
    own._models = {"small": FakeModel(lambda _: "grey")}
    state = state_of(own)
    none = BootstrapDemonstrations(own, state.knobs, labelled=False)
    assert list(asyncio.run(none.propose(state)).candidates) == []
    (candidate, *_) = asyncio.run(
        BootstrapDemonstrations(own, state.knobs).propose(state)
    ).candidates
    for each in patch_of(candidate).edits[0].plain()["demonstrations"]:
        assert GOLD[each["user"].removeprefix("Colour of ").rstrip("?")] == each["assistant"]


def writer(good: float) -> Callable[[ModelRequest], Any]:
    """Writes the right prompt with this probability, else one that says nothing."""

    def answer(request: ModelRequest) -> Any:
        right = Random(f"{request.sampling.seed}").random() < good
        text = "Colour of {{ thing }} in one word?" if right else "Hm: {{ thing }}?"
        return {"why": "say how long", "prompt": text}

    return answer


def test_a_prompt_that_helps_is_found_and_one_that_does_not_is_not(tmp_path: Path) -> None:
    found = study(["instruct"], tmp_path, writer(1.0))
    assert found.verdict.kind == "improved", found.verdict.why
    assert found.best.edits[0].why == "say how long"
    (tmp_path / "no").mkdir()
    nothing = study(["instruct"], tmp_path / "no", writer(0.0))
    assert nothing.verdict.kind in ("no_headroom", "not_shown")
    assert nothing.best.edits == ()


@pytest.mark.parametrize(
    "answer",
    [
        "no JSON",
        {"why": "x", "prompt": 7},
        {"why": "x", "prompt": "no reference"},
        {"why": "x", "prompt": "{{ thing }} {{ weft.secrets }}"},
        {"why": "x", "prompt": "{{ thing | string * 9 }}"},
        {"why": "x", "prompt": "{% for x in thing %}{{ thing }}{% endfor %}"},
        {"why": "x", "prompt": "{{ thing }}" + "x" * 9_000},
        {"why": "x", "prompt": "Colour of {{ thing }}?"},
    ],
)
def test_what_is_no_prompt_for_the_node_is_dropped(answer: Any) -> None:
    own = context(answer=lambda _prompt, _attempt: answer)
    state = state_of(own)
    made = Instructions(own, state.knobs)
    proposal = asyncio.run(made.propose(state))
    assert list(proposal.candidates) == []
    assert made.refused == 2
    assert proposal.calls <= made.calls


def test_a_rewritten_prompt_keeps_its_references() -> None:
    option = rewritten("answer", "Of {{ a }}, {{ b }}", "{{ b }} of {{ a }}", "label", "why")
    assert option is not None
    assert option.read()[0].plain()["prompt"] == "{{ b }} of {{ a }}"
    assert (option.label, option.why) == ("label", "why")
    assert bare("Of {{ a }}, {{ b }}") == "{{ a }}\n{{ b }}"


def test_tpe_needs_fewer_candidates_than_chance_for_the_best_of_an_additive_space() -> None:
    pytest.importorskip("optuna")
    from weft.optimisation.propose.tpe import ParzenKnobs

    sizes = {"a": 3, "b": 3, "c": 4, "d": 4}
    options = {name: [EditOption(f"[{n}]", str(n)) for n in range(s)] for name, s in sizes.items()}
    own = context()
    own.allowed = lambda candidate: bool(candidate)  # type: ignore[method-assign]
    base = baseline_of(options).of({name: each[0] for name, each in options.items()})

    def gain(candidate: Any) -> float:
        return sum(int(option.label) for _, option in candidate.settings)

    def needed(seed: int) -> int:
        own.seed = seed
        made = ParzenKnobs(own, options, count=1)
        blocks: list[Any] = []
        for number in range(144):
            state = SearchState(base, options, blocks, base)
            (candidate,) = asyncio.run(made.propose(state)).candidates
            blocks.append(
                {each: [CaseOutcome(gain(each))] for each in dict.fromkeys((base, candidate))}
            )
            if gain(candidate) == 2 + 2 + 3 + 3:
                return number + 1
        raise AssertionError("the best of 144 was never proposed")

    counts = [needed(seed) for seed in range(8)]
    assert len(list(product(*options.values()))) == 144
    assert sum(counts) / len(counts) < 144 / 2 / 1.5, counts
    assert STRUCTURE not in options
