"""A part of a recorded run again, live, as a run of its own."""

from __future__ import annotations

import pytest

from tests.workflow.case import loads
from tests.workflow.history.recorded_runs import House
from weft.core.errors import UnknownReference
from weft.core.events import NodeInfo
from weft.core.ids import NodeId
from weft.workflow.history.fork import cone, fork_run
from weft.workflow.history.replay import replay

NODES = """\
  one: {model: small, prompt: "one"}
  two: {model: small, prompt: "two"}
  notes: {map: [a, b], as: x, do: {model: small, prompt: "{{ x }} {{ one }}"}}
  both: {model: small, prompt: "{{ notes | join(' ') }} {{ two }}"}"""


def info(node: str, *sources: str, parent: str | None = None) -> NodeInfo:
    around = None if parent is None else NodeId(parent)
    return NodeInfo(NodeId(node), "call", tuple(map(NodeId, sources)), None, around)


def test_the_cone_holds_what_depends_and_what_holds_it() -> None:
    infos = [
        info("a"),
        info("b", "a"),
        info("m"),
        info("m[0]", parent="m"),
        info("m[1]", parent="m"),
        info("m[0]/x", parent="m[0]"),
        info("c", "m"),
        info("c/y", parent="c"),
        info("free"),
    ]
    assert cone([NodeId("a")], infos) == {"a", "b"}
    assert cone([NodeId("m[0]/x")], infos) == {"m[0]/x", "m[0]", "m", "c", "c/y"}
    assert cone([NodeId("m")], infos) == {"m", "m[0]", "m[1]", "m[0]/x", "c", "c/y"}


def test_only_the_cone_runs_live() -> None:
    house, flow = House(), loads(NODES, 'a: "{{ both }}"')
    first = house.run(flow)
    house.asked, house.script = [], lambda request: f"[{request.messages[-1].content}]"
    story = house.story()
    again = house.wait(
        lambda: fork_run(story, flow.unit, "two", house.journal, settings=_own(house))
    )
    assert house.asked == ["two", "<a <one>> <b <one>> [two]"]
    assert again.outputs == {"a": "[<a <one>> <b <one>> [two]]"}
    assert again.run != first.run
    header = house.journal.header(again.run)
    assert header.settings["forked"] == first.run
    assert header.settings["from"] == "two"
    found = replay(house.story(again.run), flow.unit)
    assert found.ok, found.report()


def test_one_item_of_a_map() -> None:
    house, flow = House(), loads(NODES, 'a: "{{ notes }}"')
    house.run(flow)
    house.asked = []
    story = house.story()
    house.wait(lambda: fork_run(story, flow.unit, "notes[1]", None, settings=_own(house)))
    assert house.asked == ["b <one>", "<a <one>> <b <one>> <two>"]


def test_a_node_that_was_not_there() -> None:
    house, flow = House(), loads(NODES, 'a: "{{ both }}"')
    house.run(flow)
    with pytest.raises(UnknownReference, match="no node 'tow'") as raised:
        fork_run(house.story(), flow.unit, "tow", None)
    assert raised.value.hint == "did you mean `two`?"


def _own(house: House) -> dict[str, object]:
    return {key: value for key, value in house.settings().items() if key != "journal"}
