from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core import ids
from weft.core.ids import NodeId

NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
STEP = st.one_of(
    st.tuples(st.just(ids.inside), NAME),
    st.tuples(st.just(ids.item), st.integers(0, 20)),
    st.tuples(st.just(ids.iteration), st.integers(1, 20)),
    st.tuples(st.just(ids.attempt), st.integers(2, 20)),
)


@given(root=NAME, steps=st.lists(STEP, max_size=5))
def test_every_step_down_can_be_taken_back(root: str, steps: list[Any]) -> None:
    node = NodeId(root)
    assert ids.parent_of(node) is None
    for step, argument in steps:
        child = step(node, argument)
        assert ids.parent_of(child) == node
        assert child.startswith(node)
        node = child


@given(root=NAME, one=STEP, other=STEP)
def test_different_steps_give_different_ids(root: str, one: Any, other: Any) -> None:
    first, second = one[0](NodeId(root), one[1]), other[0](NodeId(root), other[1])
    assert (first == second) == (one == other)


@given(root=NAME, steps=st.lists(STEP, max_size=5))
def test_a_stem_has_the_names_only(root: str, steps: list[Any]) -> None:
    node, names = NodeId(root), [root]
    for step, argument in steps:
        node = step(node, argument)
        names += [argument] if step is ids.inside else []
    assert ids.stem(node) == "/".join(names)


def test_a_first_attempt_is_the_node_itself() -> None:
    assert ids.attempt(NodeId("a"), 1) == "a"
    assert ids.attempt(NodeId("a[2]"), 3) == "a[2]~3"


@given(NAME)
def test_names(name: str) -> None:
    assert ids.is_name(name)


@pytest.mark.parametrize("text", ["", "1a", "a b", "a-b", "é", "a\n", "a/b", "a[0]", "$x"])
def test_what_is_no_name(text: str) -> None:
    assert not ids.is_name(text)


def test_run_ids_depend_on_flow_inputs_and_ordinal_only() -> None:
    one = ids.run_id("flow", {"a": 1, "b": [2]})
    assert one == ids.run_id("flow", {"b": [2], "a": 1})
    assert one.startswith("flow-")
    assert len({one, ids.run_id("flow", {"a": 2}), ids.run_id("flow", {"a": 1, "b": [2]}, 1)}) == 3


def test_inputs_that_json_lacks_still_give_an_id() -> None:
    assert ids.run_id("flow", {"a": {1, 2}}) == ids.run_id("flow", {"a": {1, 2}})


def test_the_ids_of_runs_with_the_same_inputs() -> None:
    inputs = {"b": [1, "ü"], "a": object()}
    assert list(ids.run_ids("flow", inputs, (0, 3))) == [
        ids.run_id("flow", inputs, ordinal) for ordinal in (0, 3)
    ]
    assert ids.run_id("brief", {"topic": "rivers"}) == "brief-a16769658e"


@given(root=NAME, steps=st.lists(STEP, max_size=5))
def test_sessions_lead_to_the_program(root: str, steps: list[Any]) -> None:
    node = NodeId(root)
    for step, argument in steps:
        node = step(node, argument)
    session, seen = ids.session_of(node), 0
    assert node.startswith(session)
    while session:
        assert ids.session_of(ids.inside(NodeId(session), "x")) == session
        outer = ids.parent_session(session)
        assert session.startswith(outer)
        assert len(outer) < len(session)
        session, seen = outer, seen + 1
    assert seen <= len(steps) + 1
    assert ids.parent_session("") == ""


def test_items_are_sessions_and_turns_and_attempts_are_none() -> None:
    assert ids.session_of("plan") == ""
    assert ids.session_of("notes[3]") == ids.session_of("notes[3]/draft") == "notes[3]"
    assert ids.session_of("refine#2/draft") == ids.session_of("refine#2") == "refine"
    assert ids.session_of("notes~2/x") == "notes"
    assert ids.parent_session("brief/notes[3]") == "brief"
    assert ids.parent_session("notes[3]") == ids.parent_session("refine") == ""


def test_attempts_of_a_scope_come_latest_first_with_those_of_the_scopes_around() -> None:
    assert list(ids.attempts(NodeId("a/b[1]"))) == ["a/b[1]"]
    assert list(ids.attempts(NodeId("a~2/b~3"))) == [
        *("a~2/b~3", "a~2/b~2", "a~2/b"),
        *("a/b~3", "a/b~2", "a/b"),
    ]
