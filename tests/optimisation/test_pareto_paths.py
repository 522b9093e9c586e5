"""Pareto-optimal choices in DAGs, beside brute force over all combinations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.core.errors import InputError
from weft.optimisation.pareto_paths import PathNode, PathOption, pareto_paths

Point = tuple[float, float, float]
_OPTIONS = st.builds(
    lambda seconds, cost, success: (float(seconds), float(cost), success / 8),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 8),
)


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> dict[str, PathNode]:
    """Up to `most` nodes of up to three options; figures whose sums and products are exact."""
    count = draw(st.integers(1, most))
    nodes: dict[str, PathNode] = {}
    for number in range(count):
        needs = tuple(name for name in nodes if draw(st.booleans()))
        drawn = draw(st.lists(_OPTIONS, min_size=1, max_size=3))
        options = tuple(PathOption(f"o{at}", *each) for at, each in enumerate(drawn))
        nodes[f"n{number}"] = PathNode(options, needs, bool(needs) and draw(st.booleans()))
    return nodes


def point_of(nodes: Mapping[str, PathNode], chosen: Mapping[str, PathOption]) -> Point:
    """Seconds, cost and success of one combination, by recursion."""

    def end(name: str) -> float:
        return max((end(need) for need in nodes[name].needs), default=0) + chosen[name].seconds

    users = {name: [u for u, node in nodes.items() if name in node.needs] for name in nodes}
    success = 1.0
    members: dict[str, list[float]] = {}
    for name, option in chosen.items():
        if len(users[name]) == 1 and nodes[users[name][0]].first:
            members.setdefault(users[name][0], []).append(option.success)
        else:
            success *= option.success
    for each in members.values():
        success *= max(each)
    return max(map(end, nodes)), sum(option.cost for option in chosen.values()), success


def all_points(nodes: Mapping[str, PathNode]) -> set[Point]:
    combinations = product(*(node.options for node in nodes.values()))
    return {point_of(nodes, dict(zip(nodes, each, strict=True))) for each in combinations}


def beats(one: Point, other: Point) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1] and one[2] >= other[2]


@given(graphs())
@examples(150)
def test_the_front_is_that_of_all_combinations(nodes: dict[str, PathNode]) -> None:
    points = all_points(nodes)
    front = {each for each in points if not any(beats(other, each) for other in points)}
    found = pareto_paths(nodes)
    assert {(path.seconds, path.cost, path.success) for path in found} == front
    assert len(found) == len(front)
    for path in found:
        chosen = {
            name: next(o for o in nodes[name].options if o.name == option)
            for name, option in path.choice.items()
        }
        assert point_of(nodes, chosen) == (path.seconds, path.cost, path.success)


@given(graphs(most=7), st.sampled_from([0.01, 0.1, 0.5]))
@examples(80)
def test_with_an_epsilon_every_combination_has_one_as_good_within_it(
    nodes: dict[str, PathNode], epsilon: float
) -> None:
    found = pareto_paths(nodes, epsilon=epsilon)
    share = (1 + epsilon) * (1 + 1e-9)
    for seconds, cost, success in all_points(nodes):
        assert any(
            path.seconds <= seconds * share
            and path.cost <= cost * share
            and path.success * share >= success
            for path in found
        )


def chain(count: int) -> dict[str, PathNode]:
    """Nodes in a row, all of whose combinations are on the front: time and money make one sum."""
    return {
        f"n{at}": PathNode(
            (PathOption("dear", 0.0, 2.0**at), PathOption("slow", 2.0**at, 0.0)),
            (f"n{at - 1}",) if at else (),
        )
        for at in range(count)
    }


def test_too_many_labels_are_refused_with_a_remedy_that_helps() -> None:
    with pytest.raises(InputError, match="combinations are open") as caught:
        pareto_paths(chain(12), most_labels=200)
    assert "epsilon" in (caught.value.hint or "")
    assert pareto_paths(chain(12), epsilon=0.5, most_labels=1_000)


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ({"a": PathNode(())}, "no options"),
        ({"a": PathNode((PathOption("x"),), ("b",))}, "waits for b"),
        ({"a": PathNode((PathOption("x"),), ("a",))}, "a cycle"),
        ({"a": PathNode((PathOption("x", seconds=-1.0),))}, "figure"),
        ({"a": PathNode((PathOption("x", cost=float("nan")),))}, "figure"),
    ],
)
def test_graphs_that_are_none_are_refused(nodes: dict[str, PathNode], why: str) -> None:
    with pytest.raises(InputError, match=why):
        pareto_paths(nodes)
