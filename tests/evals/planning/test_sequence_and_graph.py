"""Scores of call sequences and of graphs of subtasks."""

from __future__ import annotations

import pytest

from evals.planning.quality import nestful, sequence, worfbench
from evals.planning.quality.f1 import f1
from evals.planning.quality.graph import Subtasks, graph_f1, likeness
from evals.planning.quality.sequence import edges, score
from weft.planner.plan import Plan, PlanStep, Ref

GOLD = Plan(
    (
        PlanStep(1, "find", {"city": "Bonn"}),
        PlanStep(
            2, "book", {"room": Ref(1, ("rooms", 0)), "guests": ({"name": Ref(1, ("name",))},)}
        ),
    ),
    (Ref(2),),
)


def test_f1_counts_what_occurs_twice_twice() -> None:
    assert f1("aab", "aab") == 1.0
    assert f1("ab", "aab") == pytest.approx(4 / 5)
    assert f1("", "a") == 0.0
    assert f1("", "") == 1.0


def test_edges_are_named_by_tools_fields_and_parameters() -> None:
    assert list(edges(GOLD)) == [
        ("find", ("rooms", 0), "book", "room"),
        ("find", ("name",), "book", "guests"),
    ]


def test_numbers_of_steps_and_order_do_not_count() -> None:
    first, second = GOLD.steps
    renumbered = Plan(
        (
            PlanStep(3, first.tool, first.arguments),
            PlanStep(
                7,
                second.tool,
                {"room": Ref(3, ("rooms", 0)), "guests": ({"name": Ref(3, ("name",))},)},
            ),
        )
    )
    assert score(renumbered, GOLD) == sequence.Score(1.0, 1.0, 1.0)


def test_wrong_fields_values_and_calls_cost_what_they_should() -> None:
    first, second = GOLD.steps
    other_field = Plan(
        (first, PlanStep(2, "book", {**second.arguments, "room": Ref(1, ("best",))}))
    )
    assert score(other_field, GOLD) == sequence.Score(1.0, 0.5, 0.5)
    assert score(Plan((first,)), GOLD) == sequence.Score(2 / 3, 0.5, 0.0)
    assert score(Plan(), GOLD) == sequence.Score(0.0, 0.0, 0.0)
    assert score(GOLD, Plan((first,))).edges is None


def test_likeness_is_the_cosine_of_word_counts() -> None:
    assert likeness("Rinse the brush.", "rinse the brush.") == pytest.approx(1.0)
    assert likeness("a b", "a c") == pytest.approx(0.5)
    assert likeness("a", "") == 0.0


CHAIN = Subtasks(["boil the water", "add the tea leaves", "pour it out"], {(0, 1), (1, 2)})


def test_the_same_graph_scores_one_in_any_order_of_its_nodes() -> None:
    turned = Subtasks(list(reversed(CHAIN.nodes)), {(2, 1), (1, 0)})
    assert graph_f1(CHAIN, CHAIN) == 1.0
    assert graph_f1(turned, CHAIN) == 1.0


def test_the_largest_connected_part_counts() -> None:
    without_edges = Subtasks(CHAIN.nodes, set())
    # START-first and last-END are all that is shared: two nodes of five
    assert graph_f1(without_edges, CHAIN) == pytest.approx(2 * 2 / (3 + 3 + 4))
    shorter = Subtasks(CHAIN.nodes[:2], {(0, 1)})
    assert graph_f1(shorter, CHAIN) == pytest.approx(2 * 3 / (2 + 3 + 4))


def test_nothing_alike_scores_nothing() -> None:
    assert graph_f1(Subtasks(["read a book"], set()), CHAIN) == 0.0
    assert graph_f1(Subtasks([], set()), CHAIN) == 0.0


@pytest.mark.usefixtures("planner_data")
def test_gold_against_gold_is_one() -> None:
    for item in worfbench.items():
        assert graph_f1(item.gold, item.gold) == 1.0, item.id
    found = nestful.items()
    assert len(found) == 127
    for plan in (item.plan for item in found):
        assert score(plan, plan) == sequence.Score(1.0, 1.0, 1.0)


def test_a_plan_is_a_graph_of_subtasks() -> None:
    plan = Plan(
        (
            PlanStep(2, "perform", {"subtask": "a"}),
            PlanStep(5, "perform", {"subtask": "b", "after": (Ref(2),)}),
        )
    )
    assert worfbench.drawn(plan) == Subtasks(["a", "b"], {(0, 1)})
