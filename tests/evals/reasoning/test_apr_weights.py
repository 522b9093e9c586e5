"""The trained model as a real one that spawns and joins, and the comparison of the twins."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("torch", reason="the local engine needs weft[local]")

from evals.engine.rows import Lookup, Row
from evals.planning.effort import QUICK
from evals.reasoning import apr
from evals.reasoning.countdown.measuring import thinking
from evals.reasoning.countdown.sequences import unseen_problems
from evals.reasoning.countdown.trace import Node
from weft.reasoning.protocols.apr import make
from weft.reasoning.question import Question
from weft.reasoning.think import run_thought
from weft.reasoning.thought import Thought
from weft.reasoning.thread.record import ThreadState


def think(children: int) -> list[Thought]:
    async def main() -> list[Thought]:
        async with apr.served("apr") as model, asyncio.TaskGroup() as group:
            options = thinking({"children": children})
            tasks = [
                group.create_task(
                    run_thought(make(model, options), Question(Node.root(problem).opening))
                )
                for problem in unseen_problems(6)
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


def test_the_twins_are_compared_at_their_best() -> None:
    rows = [
        Row(apr.CASE, name, "accuracy", 10.0 if system.kind == "apr" else 7.0, "%")
        for name, system in apr.SYSTEMS.items()
    ]
    rows.append(Row(apr.CASE, "sos_budget_192", "accuracy", 9.0, "%"))
    figures = Lookup(apr.compared(Lookup(rows)))
    assert figures(apr.CASE, "apr", "points_over_twin") == 3.0
    assert figures(apr.CASE, "apr", "points_over_best_twin") == 1.0


def test_without_weights_the_section_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apr, "WEIGHTS", apr.WEIGHTS / "elsewhere")
    with pytest.raises(apr.Skipped, match="there are no weights"):
        asyncio.run(apr.run(QUICK))
