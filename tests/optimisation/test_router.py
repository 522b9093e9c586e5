"""A route's predictor from recorded evaluations: what is learnt, and when it abstains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

import weft
from tests.cli.command_line import typed
from weft.core.errors import InputError
from weft.optimisation.router import (
    RoutedCase,
    RoutingExample,
    calibration_error,
    out_of_fold,
    policy_point,
    routed_cases,
    train_router,
    validate_router,
)
from weft.planner.choice import LossRow, StaticPredictor
from weft.testing import FakeModel

TEXT = """\
name: answers
inputs: {{question: string}}
models:
  maths: {{use: local, model: tiny}}
  words: {{use: local, model: tiny}}
nodes:
  answer: {{model: {model}, prompt: "{{{{ question }}}}"}}
outputs: {{answer: "{{{{ answer }}}}"}}
"""
SUMS = ("add {} and {}", "what is {} times {}", "divide {} by {}", "the sum of {} with {}")
POEMS = ("a poem of spring {} {}", "verses on rain {} {}", "a song {} of {}", "rhyme {} moon {}")


def examples(count: int, seed: int = 1, *, special: bool = True) -> list[RoutingExample]:
    """`maths` is good at sums and `words` at poems; without `special`, both at nothing more."""
    random, found = Random(seed), []
    for number in range(count):
        sums = number % 2 == 0
        form = random.choice(SUMS if sums else POEMS)
        prompt = form.format(random.randint(1, 99), random.randint(1, 99))
        for model in ("maths", "words"):
            good = (model == "maths") == sums
            chance = (0.9 if good else 0.2) if special else 0.55
            score = float(random.random() < chance)
            seconds = 2.0 if model == "words" else 1.0
            found.append(RoutingExample(str(number), f"g{number}", prompt, model, score, seconds))
    return found


def test_specialities_are_learnt_and_the_gain_is_shown_on_unseen_cases() -> None:
    found = validate_router(routed_cases(examples(120)))
    assert found.gain.low > 0.1
    assert found.router.score.mean > found.single.score.mean
    assert found.random_score < found.router.score.mean <= found.oracle_score
    assert found.router.regret.mean == pytest.approx(found.oracle_score - found.router.score.mean)
    assert found.brier < found.brier_of_means
    assert 0 <= found.calibration < 0.2
    costs = [point.cost for _, point in found.front]
    scores = [point.score.mean for _, point in found.front]
    assert costs == sorted(costs)
    assert scores == sorted(scores)
    assert costs[0] == pytest.approx(1.0)


def test_the_same_examples_give_the_same_router() -> None:
    one, other = (train_router(examples(60)) for _ in range(2))
    assert one.losses("add 7 and 8") == other.losses("add 7 and 8")
    assert not one.abstains


def test_without_specialities_or_with_few_cases_it_abstains() -> None:
    abstained = [train_router(examples(60, seed, special=False)).abstains for seed in range(20)]
    assert sum(abstained) >= 15
    assert train_router(examples(3)).abstains
    few = train_router(examples(3))
    assert few.losses("add 7 and 8") == few.losses("a song")


def test_a_router_needs_two_models_and_its_worth_ten_groups() -> None:
    with pytest.raises(InputError, match="two models"):
        train_router([each for each in examples(20) if each.model == "maths"])
    with pytest.raises(InputError, match="fewer than 10 groups"):
        validate_router(routed_cases(examples(9)))


def test_paraphrases_are_not_learnt_from() -> None:
    """No case of a group is among what the predictions of that group were learnt from."""
    scores = {"maths": 1.0, "words": 0.0}
    cases = [RoutedCase(f"g{n // 3}", f"prompt {n}", scores, scores) for n in range(30)]
    learnt: list[set[str]] = []

    def trainer(rows: Sequence[LossRow]) -> StaticPredictor:
        learnt.append({row.prompt for row in rows})
        return StaticPredictor({"number": len(learnt) - 1})

    for case, found in zip(cases, out_of_fold(cases, trainer), strict=True):
        group = {one.prompt for one in cases if one.group == case.group}
        assert not group & learnt[int(found["number"])]
    assert all(len(each) > 15 for each in learnt)


def test_a_policy_that_knows_the_scores_has_no_regret_and_is_calibrated() -> None:
    cases = routed_cases(examples(50))
    known = [{name: 1 - score for name, score in case.scores.items()} for case in cases]
    point = policy_point(cases, known)
    assert (point.regret.mean, point.hits.mean) == (0.0, 1.0)
    assert calibration_error(cases, known) == 0.0
    wrong = [dict(case.scores) for case in cases]
    assert calibration_error(cases, wrong) == 1.0


def recorded(folder: Path, count: int) -> str:
    """Two evaluations, one with each model; the journal's place."""
    place = str(folder / "runs.sqlite")
    random = Random(3)
    data = [
        {
            "question": random.choice(SUMS if n % 2 else POEMS).format(n, n),
            "expected": "yes",
        }
        for n in range(count)
    ]

    def model(good: tuple[str, ...]) -> FakeModel:
        marks = tuple(form.split(" {}")[0].split(" ")[0] for form in good)
        return FakeModel(
            lambda request: "yes" if request.messages[-1].content.startswith(marks) else "no"
        )

    clients = {"maths": model(("add", "what", "divide", "the sum")), "words": model(POEMS)}
    for name in clients:
        file = folder / f"{name}.yaml"
        file.write_text(TEXT.format(model=name))
        weft.evaluate_sync(
            weft.load(file), data, "exact", models=clients, journal=place, run=f"with-{name}"
        )
    return place


def test_the_command_trains_from_recorded_evaluations(tmp_path: Path) -> None:
    place, out = recorded(tmp_path, 60), tmp_path / "router.json"
    words = ("train-router", "with-maths", "with-words", "--journal", place, "--out", str(out))
    shown = typed(*words)
    assert shown.exit_code == 0, shown.output
    assert "learnt from 120 answers" in shown.output
    assert "on 60 cases that it had not learnt from" in shown.output
    data = json.loads(typed(*words, "--json").output)
    assert data["models"] == {"maths": 60, "words": 60}
    assert data["validation"]["gain"]["low"] > 0
    assert not data["abstains"]
    routed = TEXT.format(model="auto").replace(
        "nodes:", "  auto: {use: route, among: [maths, words], predictor: ./router.json}\nnodes:"
    )
    (tmp_path / "routed.yaml").write_text(routed)
    clients = {name: FakeModel([name]) for name in ("maths", "words")}
    flow = weft.load(tmp_path / "routed.yaml")
    result = flow.run_sync(question="divide 7 by 3", models=clients)
    assert result["answer"] == "maths"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--metric", "f9"), "there is no metric `f9`"),
        (("--node", "other"), "needs two models"),
    ],
)
def test_the_command_says_what_is_wrong(more: tuple[str, ...], why: str, tmp_path: Path) -> None:
    place = recorded(tmp_path, 4)
    words = ("with-maths", "with-words", "--journal", place, "--out", str(tmp_path / "r.json"))
    shown = typed("train-router", *words, *more)
    assert shown.exit_code == 2
    assert why in shown.output
