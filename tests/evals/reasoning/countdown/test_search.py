"""The symbolic searches: what they write, and that what they claim to find is so."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.reasoning.countdown import trace
from evals.reasoning.countdown.problem import Problem, Range, problems, solvable, verified
from evals.reasoning.countdown.search import Beams, distance, sub_search
from evals.reasoning.countdown.sequences import Solved, run_apr, run_sos_plus
from evals.reasoning.countdown.trace import Node

GOLDEN = Path(__file__).parent / "golden"
EASY = Problem((93, 28, 54), 11)
SEEDS = st.integers(0, 2**32)


def drawn(seed: int, size: int = 3) -> Problem:
    return next(problems(seed, 1, Range(size)))


def searched(problem: Problem, beams: Beams, seed: int) -> Solved:
    return run_apr(problem, beams, lambda node: random.Random(f"{seed}{node.opening}"))


@given(SEEDS, st.integers(1, 5), st.integers(1, 8))
def test_what_apr_finds_is_a_solution(seed: int, beam: int, sub_beam: int) -> None:
    problem = drawn(seed)
    found = searched(problem, Beams(beam, sub_beam), seed)
    assert found.steps is None or verified(problem, found.steps)


@given(SEEDS, st.integers(1, 5))
def test_what_sos_plus_finds_is_a_solution(seed: int, beam: int) -> None:
    problem = drawn(seed)
    found = run_sos_plus(problem, Beams(beam, beam), random.Random(seed))
    assert found.steps is None or verified(problem, found.steps)


@given(SEEDS)
def test_searches_that_keep_everything_find_what_there_is(seed: int) -> None:
    problem = drawn(seed)
    assert searched(problem, Beams(99, 99), seed).steps is not None
    assert run_sos_plus(problem, Beams(99, 99), random.Random(seed)).steps is not None


@pytest.mark.parametrize("numbers", [(1, 1, 1), (98, 99, 97)])
def test_searches_end_where_there_is_nothing(numbers: tuple[int, int, int]) -> None:
    problem = Problem(numbers, 89)
    assert not solvable(problem.numbers, problem.target)
    for found in (
        searched(problem, Beams(5, 8), 1),
        run_sos_plus(problem, Beams(5, 5), random.Random(1)),
    ):
        assert found.steps is None
        assert found.calls[-1].endswith("No solution found.\n")


@given(SEEDS, st.integers(4, 6))
def test_apr_and_sos_plus_of_equal_beams_find_the_same(seed: int, beam: int) -> None:
    """Two numbers have four successors at most: what is found depends on what the root keeps."""
    problem = drawn(seed)
    inlined = run_sos_plus(problem, Beams(beam, beam), random.Random(seed)).steps
    assert (searched(problem, Beams(beam, 4), seed).steps is None) is (inlined is None)


@pytest.mark.parametrize("seed", range(12))
def test_each_main_call_goes_on_where_the_one_before_it_spawned(seed: int) -> None:
    found = searched(drawn(seed, 4), Beams(3, 3), seed)
    main = [call for call in found.calls if call.startswith("Moving to Node #0\n")]
    for before, after in pairwise(main):
        kept, _, called = before.partition(trace.CALLING)
        assert called.endswith(f"{trace.CALLING_END}\n")
        assert after.startswith(f"{kept}{trace.RESULTS}\n")
        assert trace.CALLING not in after.removeprefix(kept).partition(trace.RESULTS_END)[0]


def test_a_sub_search_shows_the_way_again_and_nothing_else() -> None:
    node = Node("0,1", 11, (54, 65), ("93-28=65",))
    text = sub_search(node, Beams(1, 8), random.Random(3))
    assert trace.message(text) == (
        "Exploring Operation: 65-54=11, Resulting Numbers: [11]\n11,11 equal: Goal Reached\n"
    )


def test_a_failed_sub_search_returns_nothing() -> None:
    text = sub_search(Node("0,1", 11, (54, 60), ("93-33=60",)), Beams(1, 8), random.Random(3))
    assert trace.message(text) is None
    assert text.endswith("No solution found.\n")


def test_distance_is_to_the_nearest_factor_for_each_number() -> None:
    assert distance((5, 14), 12) == 1 + 2
    assert distance((1,), 12) == 1
    assert distance((100, 3), 7) == 93 + 4


@given(SEEDS, st.integers(2, 5))
def test_listed_searches_find_what_shuffled_ones_find(seed: int, beam: int) -> None:
    problem, draws = drawn(seed), random.Random(seed)
    for searches in (run_sos_plus, lambda p, beams, rng: run_apr(p, beams, lambda _: rng)):
        listed = searches(problem, Beams(beam, 9, listed=True), draws)
        assert (listed.steps is None) is (searches(problem, Beams(beam, 9), draws).steps is None)
        assert listed.steps is None or verified(problem, listed.steps)


def test_listed_searches_go_on_in_the_order_in_which_they_wrote() -> None:
    first = searched(EASY, Beams(5, 8, listed=True), 1).calls[0]
    called = [line.rpartition(" ")[2] for line in first.splitlines() if "Start Sub" in line]
    assert called == ["#0,0", "#0,1", "#0,2", "#0,3", "#0,4"]


@pytest.mark.parametrize("kind", ["apr", "sos"])
def test_traces_are_as_they_were(kind: str) -> None:
    if kind == "apr":
        calls = searched(EASY, Beams(3, 8), 1).calls
    else:
        calls = run_sos_plus(EASY, Beams(3, 3), random.Random(1)).calls
    text = "\n=====\n".join(calls)
    assert text == (GOLDEN / f"{kind}.txt").read_text("utf-8")


def test_goals_are_found_wherever_they_are_reached() -> None:
    calls = searched(EASY, Beams(3, 8), 1).calls
    assert [trace.reached(call) for call in calls[1:4]] == [
        [("93-54=39", "39-28=11")] * 2,
        [("93-28=65", "65-54=11")] * 2,
        [],
    ]
    one = run_sos_plus(EASY, Beams(3, 8), random.Random(1)).calls[0]
    assert verified(EASY, trace.reached(one)[0])


def test_nodes_are_read_back_from_prompts() -> None:
    node = Node("0,12", 11, (54, 65), ("93-28=65",))
    assert trace.opening_node(f"Sub Call Budget: 3 {node.opening}more") == node
    assert trace.opening_node(Node.root(EASY).opening) == Node("0", 11, (93, 28, 54))
    with pytest.raises(ValueError, match="no search starts"):
        trace.opening_node("Current State: 11:[2], Operations: []\n")
