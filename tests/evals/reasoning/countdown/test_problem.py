from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals.reasoning.countdown.problem import (
    Problem,
    Range,
    problems,
    read_problems,
    solvable,
    verified,
)

PROBLEM = Problem((93, 28, 54), 11)


@pytest.mark.parametrize(
    ("steps", "right"),
    [
        (["93-28=65", "65-54=11"], True),
        (["93-28=65"], False),
        (["93-54=39", "39-28=11"], True),
        (["93-28=65", "65-54=12"], False),
        (["28-93=65", "65-54=11"], False),
        (["93-28=65", "93-54=39"], False),
        (["93-28=65", "65-28=37"], False),
        (["93-28=65", " 65-54=11"], False),
        (["93-28=65", "65-54=11", "11*1=11"], False),
        (["__import__('os')=1"], False),
        ([], False),
    ],
)
def test_every_number_is_used_once_and_every_step_is_right(steps: list[str], right: bool) -> None:
    assert verified(PROBLEM, steps) is right


@pytest.mark.parametrize(
    ("numbers", "step", "right"),
    [((6, 3), "6/3=2", True), ((3, 6), "3/6=0", False), ((7, 3), "7/3=2", False)],
)
def test_divisions_come_out_even(numbers: tuple[int, int], step: str, right: bool) -> None:
    assert verified(Problem(numbers, 2), [step]) is right


def test_nothing_is_divided_by_zero() -> None:
    assert not verified(Problem((4, 0), 4), ["4/0=4"])


def test_a_number_that_is_there_twice_can_be_used_twice() -> None:
    assert verified(Problem((5, 5, 2), 20), ["5+5=10", "10*2=20"])
    assert not verified(Problem((5, 4, 2), 20), ["5+5=10", "10*2=20"])


def test_one_number_is_solved_when_it_is_the_target() -> None:
    assert solvable((7,), 7)
    assert not solvable((7,), 8)
    assert not solvable((2, 2), 9)


@pytest.mark.parametrize("seed", range(8))
def test_drawn_problems_are_solvable_different_and_in_range(seed: int) -> None:
    drawn = list(problems(seed, 3, Range(3)))
    assert len({problem.key for problem in drawn}) == 3
    for problem in drawn:
        assert solvable(problem.numbers, problem.target)
        assert 10 <= problem.target <= 100
        assert all(1 <= number <= 99 for number in problem.numbers)


def test_test_problems_are_never_drawn() -> None:
    first, *_ = usual = list(problems(3, 5, Range(3)))
    again = list(problems(3, 5, Range(3), [first.key]))
    assert first.key not in {problem.key for problem in again}
    assert again[:4] == usual[1:]


def test_problems_are_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "problems.jsonl"
    file.write_text(json.dumps({"nums": [1, 2], "target": 3}) + "\n", "utf-8")
    assert read_problems(file) == [Problem((1, 2), 3)]
