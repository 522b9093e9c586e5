"""Programs that cannot run are refused when they are built, naming the place and the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.virtual_run import echo, give, node
from weft.core.errors import (
    BuildError,
    CycleError,
    DuplicateName,
    JoinError,
    UnknownReference,
    WeftError,
)
from weft.core.ids import NodeId
from weft.engine import ANY, Edge, Graph, Join, Node, best_effort, first_valid, quorum


def refused(
    *nodes: Node, error: type[BuildError], says: str, at: str, hint: str, keep: Any = ()
) -> None:
    with pytest.raises(error) as raised:
        Graph("test", nodes, keep=keep)
    assert says in raised.value.message
    assert raised.value.node == at
    assert raised.value.hint is not None
    assert hint in raised.value.hint


def test_two_nodes_of_one_name() -> None:
    refused(
        node("a", give(1)),
        node("a", give(2)),
        error=DuplicateName,
        says="two nodes are called 'a'",
        at="a",
        hint="rename one",
    )


def test_a_reference_to_nobody_suggests_a_name() -> None:
    refused(
        node("notes", give(1)),
        node("b", echo, "note"),
        error=UnknownReference,
        says="there is no node 'note'",
        at="b",
        hint="did you mean 'notes'?",
    )
    refused(
        node("b", echo, "zebra"),
        error=UnknownReference,
        says="there is no node 'zebra'",
        at="b",
        hint="add that node, or remove the reference",
    )


def test_a_reference_into_somebody_s_branches() -> None:
    refused(
        node("m", give(1)),
        node("b", echo, Edge(NodeId("m[3]"), "x")),
        error=JoinError,
        says="'m[3]' lives inside 'm', which owns its branches",
        at="b",
        hint="the joined result of 'm'",
    )


@pytest.mark.parametrize(
    ("edges", "path"),
    [
        ({"a": ["a"]}, "a -> a"),
        ({"a": ["b"], "b": ["a"]}, "a -> b -> a"),
        ({"a": [], "b": ["a", "d"], "c": ["b"], "d": ["c"]}, "b -> d -> c -> b"),
    ],
)
def test_a_cycle_shows_its_way(edges: dict[str, list[str]], path: str) -> None:
    with pytest.raises(CycleError) as raised:
        Graph("test", [node(name, echo, *sources) for name, sources in edges.items()])
    found = raised.value.message.removeprefix("nodes wait for each other: ").split(" -> ")
    ring = path.split(" -> ")[:-1]
    assert found[0] == found[-1] == raised.value.node
    start = ring.index(found[0])
    assert found[:-1] == ring[start:] + ring[:start]
    assert "remove one" in str(raised.value.hint)


def test_a_self_reference_through_a_stand_in() -> None:
    spare = node("spare", echo, "b")
    refused(
        node("a", give(1), fallback=spare),
        node("b", echo, "a"),
        error=CycleError,
        says="wait for each other",
        at="a",
        hint="remove one",
    )


def test_two_writers_of_one_input() -> None:
    a, b = node("a", give(1)), node("b", give(2))
    two = Node(NodeId("c"), echo, (Edge(NodeId("a"), "x"), Edge(NodeId("b"), "x")))
    hint = "give each its own name"
    refused(a, b, two, error=DuplicateName, says="two inputs write 'x'", at="c", hint=hint)
    both = Node(NodeId("c"), echo, (Edge(NodeId("a"), "x"),), {"x": 1})
    refused(a, both, error=DuplicateName, says="two inputs write 'x'", at="c", hint=hint)


@pytest.mark.parametrize("k", [0, -1, 3])
def test_a_quorum_that_can_never_be_met(k: int) -> None:
    refused(
        node("a", give(1)),
        node("b", give(2)),
        node("c", echo, "a", "b", join=quorum(k)),
        error=JoinError,
        says=f"a quorum of {k} of 2 branches can never be met",
        at="c",
        hint="k must be from 1 to 2",
    )


def test_a_quorum_counts_branches_not_edges() -> None:
    twice = (Edge(NodeId("a"), "x"), Edge(NodeId("a"), "y"))
    refused(
        node("a", give(1)),
        node("c", echo, *twice, join=quorum(2)),
        error=JoinError,
        says="a quorum of 2 of 1 branches",
        at="c",
        hint="from 1 to 1",
    )


@pytest.mark.parametrize("join", [ANY, quorum(1), first_valid(), best_effort()])
def test_a_join_of_nothing(join: Join) -> None:
    refused(
        node("a", give(1), join=join),
        error=JoinError,
        says="without branches owns nothing to join",
        at="a",
        hint="name the nodes it joins",
    )


@pytest.mark.parametrize("join", [ANY, quorum(1), first_valid(), best_effort()])
def test_a_join_that_picks_cannot_take_items_one_by_one(join: Join) -> None:
    refused(
        node("a", give(1)),
        node("b", echo, Edge(NodeId("a"), "x", stream=True), join=join),
        error=JoinError,
        says="cannot take the items of 'a' one by one",
        at="b",
        hint="join the whole list instead",
    )


def test_a_node_to_keep_that_does_not_exist() -> None:
    with pytest.raises(UnknownReference, match="no node 'b' to keep"):
        Graph("test", [node("a", give(1))], keep=[NodeId("b")])


def test_every_check_is_a_build_error_in_one_sentence() -> None:
    with pytest.raises(WeftError) as raised:
        Graph("test", [node("b", echo, "a")])
    assert str(raised.value) == ("b: there is no node 'a' (add that node, or remove the reference)")
    assert raised.value.stage == "build"


def test_a_graph_of_nothing_is_a_graph() -> None:
    assert Graph("empty", []).order == []


def test_ranks_are_the_remaining_critical_path() -> None:
    graph = Graph(
        "test",
        [
            node("a", give(1), weight=2),
            node("b", echo, "a", weight=3),
            node("c", echo, "a", weight=10),
            node("d", echo, "b", "c"),
            node("alone", give(1), weight=0.5),
        ],
    )
    assert graph.ranks == {"a": 13, "b": 4, "c": 11, "d": 1, "alone": 0.5}
