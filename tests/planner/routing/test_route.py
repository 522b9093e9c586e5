"""The search against networkx where it is plain, and against a fixed point where joins count."""

import itertools
from math import inf

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.planning.healing.oracle import reachable
from tests.planner.routing.random_tool_graphs import START, graphs
from tests.profile import examples
from weft.core.errors import BuildError, DuplicateName
from weft.planner.routing import (
    Route,
    RoutedTool,
    RouteStep,
    RouteWeights,
    ToolGraph,
    shortest_route,
)

WEIGHTS = RouteWeights()


def prices(graph: ToolGraph) -> dict[str, float]:
    return {name: WEIGHTS.price(tool.cost) for name, tool in graph.tools.items()}


def knuth(graph: ToolGraph, price: dict[str, float]) -> dict[str, float]:
    """The measure of each name, as the least fixed point of its equations."""
    cost = dict.fromkeys(graph.names | START.keys(), inf) | dict.fromkeys(START, 0.0)
    for _ in range(len(cost) + 1):
        for tool in graph.tools.values():
            met = [min(cost[source] for source in demand.sources) for demand in tool.demands]
            for name in tool.names:
                cost[name] = min(cost[name], price[tool.name] + sum(met))
    return cost


def test_a_chain() -> None:
    graph = ToolGraph([RoutedTool("a", {"x": "s"}), RoutedTool("b", {"x": "a"})])
    way = shortest_route(graph, {"s"}, ["b"], lambda _: 1.0)
    assert way == Route((RouteStep("a", ("s",)), RouteStep("b", ("a",))), 2.0)


def test_a_join_needs_all_and_a_shared_part_is_done_once() -> None:
    graph = ToolGraph(
        [
            RoutedTool("root", {"x": "s"}),
            RoutedTool("left", {"x": "root"}),
            RoutedTool("right", {"x": "root"}),
            RoutedTool("join", {"x": "left", "y": "right"}),
        ]
    )
    way = shortest_route(graph, {"s"}, ["join"], lambda _: 1.0)
    assert way is not None
    assert [hop.tool for hop in way.steps] == ["root", "left", "right", "join"]
    assert way.cost == 4.0


def test_what_one_want_led_to_is_free_for_the_next() -> None:
    graph = ToolGraph(
        [
            RoutedTool("dear", {"x": "s"}, gives=("both",)),
            RoutedTool("cheap", {"x": "s"}, gives=("one",)),
            RoutedTool("too", {"x": "both"}, gives=("one",)),
        ]
    )
    price = {"dear": 10.0, "cheap": 2.0, "too": 1.0}
    way = shortest_route(graph, {"s"}, ["both", "one"], price.__getitem__)
    assert way is not None
    assert [hop.tool for hop in way.steps] == ["dear", "too"]


def test_what_is_there_needs_no_way_and_what_cannot_be_had_has_none() -> None:
    graph = ToolGraph([RoutedTool("a", {"x": "a2"}), RoutedTool("a2", {"x": "a"})])
    assert shortest_route(graph, {"a"}, ["a"], lambda _: 1.0) == Route()
    assert shortest_route(graph, set(), ["a"], lambda _: 1.0) is None
    assert shortest_route(graph, {"s"}, ["nothing"], lambda _: 1.0) is None


def test_an_infinite_price_closes_a_way() -> None:
    graph = ToolGraph([RoutedTool("a", {"x": "s"}, gives=("g",)), RoutedTool("b", gives=("g",))])
    price = {"a": inf, "b": 5.0}
    way = shortest_route(graph, {"s"}, ["g"], price.__getitem__)
    assert way == Route((RouteStep("b", ()),), 5.0)


@given(st.data(), graphs(joins=False))
@examples(150)
def test_plain_graphs_as_networkx_searches_them(data: st.DataObject, graph: ToolGraph) -> None:
    price = prices(graph)
    want = data.draw(st.sampled_from(sorted(graph.names)))
    plain: nx.DiGraph[tuple[str, str]] = nx.DiGraph()
    plain.add_node(("name", want))
    for start in START:
        plain.add_edge(("", ""), ("name", start), weight=0.0)
    for tool in graph.tools.values():
        for source in tool.demands[0].sources:
            plain.add_edge(("name", source), ("tool", tool.name), weight=price[tool.name])
        for name in tool.names:
            plain.add_edge(("tool", tool.name), ("name", name), weight=0.0)
    way = shortest_route(graph, START.keys(), [want], price.__getitem__)
    try:
        length = nx.dijkstra_path_length(plain, ("", ""), ("name", want))
    except nx.NetworkXNoPath:
        assert way is None
    else:
        assert way is not None
        assert way.cost == pytest.approx(length)


@given(st.data(), graphs())
@examples(250)
def test_ways_with_joins(data: st.DataObject, graph: ToolGraph) -> None:
    price = prices(graph)
    closed = data.draw(st.sets(st.sampled_from(list(graph.tools))))
    price |= dict.fromkeys(closed, inf)
    wants = data.draw(st.lists(st.sampled_from(sorted(graph.names)), min_size=1, max_size=3))
    way = shortest_route(graph, START.keys(), wants, price.__getitem__)
    there = reachable(graph, frozenset(START), frozenset(closed))
    assert (way is None) == (not there.issuperset(wants))
    if way is None:
        return
    had = set(START)
    for hop in way.steps:
        demands = graph.tools[hop.tool].demands
        assert had.issuperset(hop.sources)
        assert all(s in d.sources for s, d in zip(hop.sources, demands, strict=True))
        had.update(graph.tools[hop.tool].names)
    assert had.issuperset(wants)
    assert len({hop.tool for hop in way.steps}) == len(way.steps)
    assert way.cost == pytest.approx(sum(price[hop.tool] for hop in way.steps))
    measure = knuth(graph, price)
    assert way.cost <= sum(measure[want] for want in wants) + 1e-9
    if len(wants) == 1:
        assert way.cost >= _least(graph, price, wants[0]) - 1e-9


def _least(graph: ToolGraph, price: dict[str, float], want: str) -> float:
    """The price of the cheapest set of tools that leads to `want`, by trying all of them."""
    best = inf
    for count in range(len(graph.tools) + 1):
        for chosen in itertools.combinations(graph.tools, count):
            cost = sum(price[name] for name in chosen)
            if cost < best:
                others = frozenset(graph.tools) - set(chosen)
                if want in reachable(graph, frozenset(START), others):
                    best = cost
    return best


def test_graphs_that_mean_nothing() -> None:
    with pytest.raises(DuplicateName, match="two tools"):
        ToolGraph([RoutedTool("a"), RoutedTool("a")])
    with pytest.raises(DuplicateName, match="a tool's name"):
        ToolGraph([RoutedTool("a", gives=("b",)), RoutedTool("b")])
    with pytest.raises(BuildError, match="one of no things"):
        ToolGraph([RoutedTool("a", {"x": ()})])


def test_what_may_follow_what() -> None:
    graph = ToolGraph(
        [
            RoutedTool("a", gives=("f",)),
            RoutedTool("b", {"x": ("f", "a")}),
            RoutedTool("c", after=("b",)),
        ]
    )
    assert list(graph.follows()) == [("a", "b"), ("b", "c")]


def test_labels_fit_into_ids_and_differ() -> None:
    graph = ToolGraph([RoutedTool("a/b"), RoutedTool("a#b"), RoutedTool("../x"), RoutedTool("[~]")])
    assert list(graph.labels.values()) == ["a_b", "a_b_2", "_x", "___"]
