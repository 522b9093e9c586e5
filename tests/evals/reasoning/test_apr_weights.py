"""The trained model as a real one that spawns and joins, and the comparison of the twins."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("torch", reason="the local engine needs weft[local]")

from evals.engine.rows import Lookup
from evals.planning.effort import QUICK
from evals.reasoning import apr
from evals.reasoning.countdown.measuring import Solved, solve_all, thinking
from evals.reasoning.countdown.problem import Problem
from evals.reasoning.countdown.sequences import development_problems
from evals.reasoning.countdown.trace import Node
from weft.core.errors import ModelRequestError
from weft.reasoning.protocols.apr import make
from weft.reasoning.question import Question
from weft.reasoning.strategy import run_thought
from weft.reasoning.thought import Thought, ThoughtCounts, ThreadState
from weft.testing import TokenModel, TokenReply


def think(children: int) -> list[Thought]:
    async def main() -> list[Thought]:
        async with apr.served("apr") as model, asyncio.TaskGroup() as group:
            options = thinking({"children": children})
            tasks = [
                group.create_task(
                    run_thought(make(model, options), Question(Node.root(problem).opening))
                )
                for problem in development_problems(6)
            ]
        return [task.result() for task in tasks]

    return asyncio.run(main())


def test_a_trained_model_spawns_as_it_is_told_and_reads_what_comes_back() -> None:
    thoughts = think(children=3)
    forked = [thought for thought in thoughts if thought.counts.forks]
    assert len(forked) >= 5
    assert sum(thought.counts.width == 3 for thought in forked) >= len(forked) - 1
    for thought in forked:
        assert thought.fidelity == "exact"
        assert thought.tree is not None
        (fork, *_) = thought.tree.forks
        assert all(child.state is ThreadState.DONE for child in fork.children)
        assert "<Sub Searches>" in thought.tree.text
    results = [child.result for thought in forked for child in thought.tree.forks[0].children]
    assert any(results)
    assert not all(results)


def solved(right: str, longest: int = 100) -> list[Solved]:
    """Outcomes of as many problems; "1" is a right one."""
    problem = Problem((5, 2, 4), 14)
    steps = {"1": ("5*2=10", "10+4=14"), "0": ()}
    return [
        Solved(problem, steps[one], one == "1", ThoughtCounts(), longest, False) for one in right
    ]


def test_the_twins_are_compared_problem_by_problem() -> None:
    nothing = solved("0" * 8)
    outcomes = dict.fromkeys(apr.SYSTEMS, nothing)
    outcomes |= {
        "apr": solved("11110000"),
        "apr_children_3": solved("11111100"),
        "sos": solved("01111000", longest=200),
        "sos_budget_320": solved("11111000"),
    }
    figures = Lookup(apr.case_rows(apr.CASE, outcomes))
    assert figures(apr.CASE, "apr", "points_over_twin") == 0.0
    assert figures(apr.CASE, "apr_children_3", "points_over_twin") == 25.0
    assert figures(apr.CASE, "apr_children_3", "points_over_best_twin") == 12.5
    low, high = (
        figures(apr.CASE, "apr_children_3", f"points_over_best_twin_{end}") or 0.0
        for end in ("low", "high")
    )
    assert low < 0 < 12.5 < high
    assert figures(apr.CASE, "sos", "accuracy_within_192") == 0.0
    assert figures(apr.CASE, "sos", "accuracy_low") == pytest.approx(21.5, abs=0.1)
    assert figures(apr.CASE, "", "problems") == 8


def test_a_problem_without_an_answer_is_not_solved(capsys: pytest.CaptureFixture[str]) -> None:
    def never(*_: object) -> TokenReply:
        return TokenReply(error=ModelRequestError("no words for it"))

    (one,) = asyncio.run(solve_all(TokenModel(never), [Problem((5, 2, 4), 14)], {}))
    assert not one.right
    assert one.cut_off
    assert "no words for it" in capsys.readouterr().err


def test_without_weights_the_section_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apr, "WEIGHTS", apr.WEIGHTS / "elsewhere")
    with pytest.raises(apr.Skipped, match="there are no weights"):
        asyncio.run(apr.run(QUICK))
