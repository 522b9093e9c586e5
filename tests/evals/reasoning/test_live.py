"""The section `live`: every strategy under two rules, with intervals and cost; no real model."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable

import pytest

from evals.engine.rows import Lookup, Row
from evals.planning.effort import FULL, Skipped
from evals.reasoning import sections
from evals.reasoning.equal_budget import Item, Terms
from evals.reasoning.live import LiveTerms, evaluation, run, table
from evals.reasoning.live.evaluation import REFERENCE, everybody, rows_of
from evals.reasoning.live.terms import TASKS, add_arguments, terms_of
from evals.reasoning.models import tasks
from evals.reasoning.models.tasks import Task, last_number_key
from weft.reasoning.question import Question
from weft.reasoning.samplers.registry import sampler_maker
from weft.reasoning.strategies import STRATEGIES
from weft.testing import TokenModel, TokenReply

EVEN = Task(
    "even",
    [
        Item(f"even {number}", Question(f"How many? ({number})"), lambda _, key: key == "7")
        for number in range(10)
    ],
    last_number_key,
)


def few(count: int) -> Task:
    return Task(EVEN.name, EVEN.items[:count], EVEN.read)


@pytest.fixture
def even() -> LiveTerms:
    """One task of ten questions, whose answer is 7."""
    return LiveTerms("local:some/Model 1", items=10, tasks=("even",), terms=Terms(20, 2))


def measured(live: LiveTerms, says: str = "so so Answer: 7") -> list[Row]:
    model = TokenModel(lambda *_: TokenReply(says))
    return asyncio.run(rows_of(model, live, FULL, {"even": few}))


def test_every_strategy_is_there_or_says_why_not() -> None:
    asked = {contender.strategy for contender in everybody(EVEN)}
    assert asked | set(evaluation._OTHERS) == set(STRATEGIES)
    systems = [contender.system for contender in everybody(EVEN)]
    assert len(set(systems)) == len(systems)


def test_every_sampler_is_there() -> None:
    used = {
        contender.settings.get("sampler", "fixed")
        for contender in everybody(EVEN)
        if contender.strategy == "sample"
    }
    with pytest.raises(Exception, match="there is no") as refused:
        sampler_maker("none", 1, {})
    hint = str(refused.value) + str(getattr(refused.value, "hint", ""))
    for name in used:
        assert str(name) in hint
    listed = hint.rpartition(":")[2].replace(",", " ").split()
    assert set(listed) <= {str(name) for name in used}, "a sampler that nobody measures"


def test_both_rules_hold_for_all(even: LiveTerms) -> None:
    found = Lookup(measured(even, "so " * 60))
    tokens, path = "even_equal_tokens_some-model-1", "even_equal_latency_model-1"
    totals = found.of("total_tokens")
    assert len([1 for case, _ in totals if case == tokens]) > 20
    for (case, system), total in totals.items():
        if case == tokens:
            assert total <= 2 * 20, system
    for (case, system), longest in found.of("critical_path_tokens").items():
        if case == path:
            assert longest <= 20, system


def test_shares_have_intervals_and_differences_are_paired(even: LiveTerms) -> None:
    rows = measured(even)
    found, case = Lookup(rows), "even_equal_tokens_some-model-1"
    assert found(case, "direct", "accuracy") == 1.0
    low = found(case, "direct", "accuracy_low")
    assert low is not None
    assert 0.6 < low < 1.0, "ten of ten are not all"
    assert found(case, "direct", "gain") == 0.0
    assert found(case, REFERENCE, "gain") is None
    assert found(case, "direct", "cost") is None, "nobody said what it costs"
    (why,) = [
        row for row in rows if row.system == "deepconf" and row.case == case and row.unit == ""
    ]
    assert why.metric.startswith("failed: ")
    text = table(rows)
    assert "self-refine" in text
    assert why.metric in text


def test_of_few_questions_no_difference_is_told(even: LiveTerms) -> None:
    few = LiveTerms(even.model, items=3, tasks=even.tasks, terms=even.terms, prices=(1.0, 2.0))
    found, case = Lookup(measured(few)), "even_equal_tokens_some-model-1"
    assert found(case, "direct", "gain") is None
    read, written = (found(case, "direct", f"{kind}_tokens") for kind in ("prompt", "total"))
    assert read is not None
    assert written is not None
    assert found(case, "direct", "cost") == pytest.approx((read + 2 * written) / 1e6)


def test_side_by_side_is_in_order(even: LiveTerms) -> None:
    one, four = (
        LiveTerms(even.model, items=10, at_once=n, tasks=even.tasks, terms=even.terms)
        for n in (1, 4)
    )
    timed = {"wall_s", "wall_total_s"}
    assert [row for row in measured(one) if row.metric not in timed] == [
        row for row in measured(four) if row.metric not in timed
    ]


def test_without_a_model_it_says_which_to_name() -> None:
    (found,) = asyncio.run(sections.found_by(["live"], FULL))
    assert "--model local:NAME" in found[1][0].metric
    with pytest.raises(Skipped, match="no-such-model"):
        asyncio.run(run(FULL, LiveTerms("local:no-such-model")))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["--model", "m"], "local:m"),
        (["--model", "vllm:m"], "vllm:m"),
        (
            ["--model", "m", "--base-url", "http://x/v1"],
            {"use": "openai", "model": "m", "base_url": "http://x/v1"},
        ),
    ],
)
def test_a_model_is_named_as_in_workflows(line: list[str], expected: object) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    found = terms_of(parser.parse_args(line))
    assert found.declared == expected
    assert found.tasks == tuple(TASKS)


@pytest.mark.parametrize("line", [["--tasks", "gsm9k"], ["--items", "0"], ["--prices", "1"]])
def test_what_cannot_be_is_refused(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(line)
    assert "argument" in capsys.readouterr().err


def test_answers_of_math_500_are_compared_in_canonical_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [{"problem": "x?", "answer": "\\frac{14}{3}"}, {"problem": "y?", "answer": "p - q"}]
    load: Callable[[str], object] = lambda _name: rows  # noqa: E731
    monkeypatch.setattr(tasks, "load", load)
    fraction, letters = tasks.math500(5).items
    assert fraction.right("So it is \\boxed{14/3}.", None)
    assert not fraction.right("So it is \\boxed{14/4}.", None)
    assert letters.right("The answer is $p-q$", None)
