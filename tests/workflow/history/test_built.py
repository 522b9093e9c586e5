"""What was built on the outcome of a node, by the names and places of the others."""

from __future__ import annotations

import pytest

from weft.core.ids import NodeId
from weft.workflow.history.confirmations import built_on, scopes_of

NEEDS = {
    "first": frozenset[str](),
    "done": frozenset({"first"}),
    "done/charge": frozenset[str](),
    "done/ship": frozenset({"done/charge"}),
    "done/note": frozenset({"done/ship"}),
    "done/other": frozenset[str](),
    "last": frozenset({"done"}),
    "refine": frozenset[str](),
    "refine/pay": frozenset[str](),
}


@pytest.mark.parametrize(
    ("node", "worked", "user"),
    [
        ("done[4]/charge", ["done[4]/charge", "done[4]/other", "done[3]/ship", "first"], None),
        ("done[4]/charge", ["done[3]/ship", "done[4]/ship"], "done[4]/ship"),
        ("done[4]/charge", ["done[4]/note"], "done[4]/note"),
        ("done~2[4]/charge", ["done~3[4]/ship"], "done~3[4]/ship"),
        ("done[4]/charge", ["done", "last"], "last"),
        ("first", ["done[1]/other"], "done[1]/other"),
        ("last", ["first", "done", "done[0]/ship"], None),
        ("refine#2/pay", ["refine#1/pay"], None),
        ("refine#2/pay", ["refine#3/pay"], "refine#3/pay"),
        ("agent/calls1/s1", [], "agent/calls1/s1"),
    ],
)
def test_who_took_in_what_a_node_came_to(node: str, worked: list[str], user: str | None) -> None:
    assert built_on(NodeId(node), NEEDS, [NodeId(each) for each in worked]) == user


def test_a_node_and_what_it_is_inside() -> None:
    assert list(scopes_of(NodeId("a#2/b[3]/c"))) == ["a#2/b[3]/c", "a#2/b[3]", "a#2/b", "a#2", "a"]
