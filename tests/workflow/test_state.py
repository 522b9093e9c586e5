"""The state of a workflow: what nodes see of it, in which order it is written, and what is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.profile import examples
from tests.workflow.case import loads, run
from tests.workflow.history.recorded_runs import House
from weft.core.errors import BuildError, ModelUnavailable
from weft.core.ids import NodeId
from weft.core.ports import ModelRequest
from weft.testing import FakeClock, FakeTools, MemoryJournal, Reply
from weft.workflow.history.replay import replay

HEAD = """\
name: case
inputs:
  topic: {type: string, default: rivers}
models:
  small: local:smollm2-135m-instruct
tools:
  search: ./tools.py:search
state:
  notes: {type: [string], reduce: append}
  seen: {type: [string], reduce: union}
  parts: {type: object, reduce: merge}
  count: {type: integer, initial: 10, reduce: add}
  best: {type: number, reduce: max}
  topic_now: string
"""


def flow_of(nodes: str, outputs: str = 'a: "{{ state }}"') -> weft.Flow:
    return loads(nodes, outputs, HEAD)


def test_writes_are_folded_in_declared_order_and_read_by_later_nodes() -> None:
    nodes = """\
  one: {model: small, prompt: one, writes: {notes: "{{ value }}", count: 1}}
  two:
    value: {x: [a, b]}
    writes: {notes: "{{ topic }}", seen: "{{ value.x + ['a'] }}", parts: {two: "{{ value.x[1] }}"}}
  three: {value: "{{ state.notes }}", writes: {best: "{{ value | length }}", topic_now: now}}
  four: {value: 3, writes: {best: 1, parts: {four: 4}, count: -2}}"""
    result = run(flow_of(nodes))
    state = {
        "notes": ["<one>", "rivers"],
        "seen": ["a", "b"],
        "parts": {"two": "b", "four": 4},
        "count": 9,
        "best": 2,
        "topic_now": "now",
    }
    assert result.state == state
    assert result.outputs == {"a": state}
    assert result.outcomes[NodeId("three")].value == ["<one>", "rivers"]
    assert result.status == "succeeded"


def test_before_any_write_a_field_has_its_initial_value() -> None:
    result = run(
        flow_of('  a: {value: ["{{ state.best }}", "{{ state.count }}", "{{ state.notes }}"]}')
    )
    assert result.outcomes[NodeId("a")].value == [None, 10, []]
    assert result.state["topic_now"] is None


def test_a_node_left_out_writes_nothing_and_its_readers_run() -> None:
    nodes = """\
  one: {value: x, when: "{{ topic == 'seas' }}", writes: {notes: "{{ value }}"}}
  two: {value: y, writes: {notes: "{{ value }}"}}
  three: {value: "{{ state.notes }}"}"""
    assert run(flow_of(nodes), topic="rivers").state["notes"] == ["y"]
    assert run(flow_of(nodes), topic="seas").state["notes"] == ["x", "y"]


def test_a_reader_does_not_run_where_a_writer_that_it_sees_failed() -> None:
    def gone(request: ModelRequest) -> Reply:
        del request
        return Reply(error=ModelUnavailable("gone"))

    nodes = """\
  first: {value: x, writes: {notes: "{{ value }}"}}
  one: {model: small, prompt: one, writes: {notes: "{{ value }}"}}
  two: {value: "{{ state.notes }}"}
  other: {value: "{{ state.count }}"}"""
    result = run(flow_of(nodes, 'a: "{{ two }}"'), gone)
    ends = {node: outcome.status for node, outcome in result.outcomes.items()}
    assert (ends[NodeId("one")], ends[NodeId("two")]) == ("failed", "skipped")
    assert ends[NodeId("other")] == "succeeded"
    assert result.state["notes"] == ["x"]


def test_a_value_of_another_type_fails_with_the_node_and_the_field() -> None:
    nodes = '  one: {model: small, prompt: one, writes: {count: "{{ value[0] }}"}}'
    result = run(flow_of(nodes))
    failure = result.outcomes[NodeId("one.writes")].failure
    assert failure is not None
    assert failure.error == "TypeMismatch"
    assert (
        failure.message == '`add` of `state.count` cannot take this: "<" is not of type "integer"'
    )
    assert result.status == "failed"
    assert result.state["count"] == 10


def test_a_reader_in_a_body_sees_the_state_before_its_container() -> None:
    nodes = """\
  one: {value: x, writes: {notes: "{{ value }}"}}
  two: {map: [1, 2], as: n, do: {value: "{{ n }} {{ state.notes }}"}}
  three:
    branch: "{{ topic }}"
    cases: {rivers: {value: "{{ state.notes[0] }}"}, default: {value: none}}"""
    result = run(flow_of(nodes, 'a: "{{ two }}"\n  b: "{{ three }}"'))
    assert result.outputs == {"a": ['1 ["x"]', '2 ["x"]'], "b": "x"}


def test_a_map_writes_in_the_order_of_its_items() -> None:
    def slow_first(request: ModelRequest) -> Reply:
        text = str(request.messages[-1].content)
        return Reply(text, first_token_s=10.0 - int(text), per_token_s=0.0)

    nodes = """\
  items:
    map: [1, 2, 3]
    as: n
    do:
      nodes:
        one: {model: small, prompt: "{{ n }}", writes: {notes: "{{ value }}", count: "{{ n }}"}}
        two: {value: "{{ state.notes }}", writes: {seen: ["{{ value | length }} of {{ n }}"]}}
      result: "{{ two }}"
    writes: {notes: end}
  after: {value: "{{ state.notes | length }}"}"""
    result = run(flow_of(nodes, 'a: "{{ items }}"'), slow_first)
    assert result.outputs == {"a": [["1"], ["2"], ["3"]]}
    assert result.state["notes"] == ["1", "2", "3", "end"]
    assert result.state["seen"] == ["1 of 1", "1 of 2", "1 of 3"]
    assert result.state["count"] == 16
    assert result.outcomes[NodeId("after")].value == 4


def test_a_body_of_one_node_may_write() -> None:
    nodes = '  items: {map: [2, 3], as: n, do: {value: "{{ n }}", writes: {count: "{{ value }}"}}}'
    result = run(flow_of(nodes, 'a: "{{ items }}"'))
    assert (result.outputs, result.state["count"]) == ({"a": [2, 3]}, 15)


def test_an_iteration_sees_what_those_before_it_wrote() -> None:
    nodes = """\
  before: {value: 0, writes: {count: 1, notes: start}}
  refine:
    loop:
      nodes:
        step: {value: "{{ iteration }} {{ state.count }}", writes: {notes: "{{ value }}", count: 1}}
        next: {value: "{{ state.count }}"}
      result: {text: "{{ next }}", notes: "{{ state.notes | length }}"}
    as: last
    until: "{{ last.text == 14 }}"
    max: 9
  after: {value: "{{ state.count }}"}"""
    result = run(flow_of(nodes, 'a: "{{ refine }}"\n  b: "{{ after }}"'))
    assert result.outputs == {"a": {"text": 14, "notes": 4}, "b": 14}
    assert result.state["notes"] == ["start", "1 11", "2 12", "3 13"]


def test_the_case_of_a_branch_that_runs_writes_and_containers_nest() -> None:
    nodes = """\
  rounds:
    loop:
      nodes:
        kind:
          branch: "{{ iteration == 2 }}"
          cases:
            true: {value: even, writes: {notes: "{{ value }}"}}
            default:
              nodes:
                all:
                  map: [a, b]
                  as: x
                  do: {value: "{{ x }}{{ iteration }}", writes: {notes: "{{ value }}"}}
              result: "{{ all }}"
        size: {value: "{{ state.notes | length }}"}
      result: "{{ size }}"
    as: n
    until: "{{ n > 4 }}"
    max: 5"""
    result = run(flow_of(nodes, 'a: "{{ rounds }}"'))
    assert result.state["notes"] == ["a1", "b1", "even", "a3", "b3"]
    assert result.outputs == {"a": 5}


def test_a_container_that_its_default_replaces_writes_only_what_it_declares() -> None:
    nodes = """\
  items:
    map: [1, 0]
    as: n
    do:
      nodes:
        one: {value: "{{ n }}", writes: {notes: "item {{ value }}"}}
        two: {value: "{{ 1 / n }}", after: one}
      result: "{{ two }}"
    default: []
    writes: {notes: "{{ value | length }} items"}"""
    assert run(flow_of(nodes, 'a: "{{ items }}"')).state["notes"] == ["0 items"]


def test_an_included_workflow_has_a_state_of_its_own(tmp_path: Any) -> None:
    inner = "name: inner\nstate: {x: {type: [string], reduce: append}}\nnodes:\n"
    inner += "  one: {value: a, writes: {x: '{{ value }}'}}\noutputs: {x: '{{ state.x }}'}\n"
    (tmp_path / "inner.yaml").write_text(inner)
    outer = "name: outer\nstate: {x: {type: integer, reduce: add}}\nnodes:\n"
    outer += "  sub: {workflow: ./inner.yaml, writes: {x: '{{ value.x | length }}'}}\n"
    outer += "  twice: {map: [1, 2], do: {workflow: ./inner.yaml}}\n"
    outer += "outputs: {a: '{{ sub.x }}', b: '{{ twice }}', c: '{{ state.x }}'}\n"
    (tmp_path / "outer.yaml").write_text(outer)
    result = FakeClock().run(weft.load(tmp_path / "outer.yaml").run(durability="none"))
    assert result.outputs == {"a": ["a"], "b": [{"x": ["a"]}, {"x": ["a"]}], "c": 1}
    assert result.state == {"x": 1}


# -- any order of ends ---------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Nodes with a duration each, what they read, and what they write, by field."""
    fields = ("items", "total", "high", "table", "last")
    nodes = []
    for number in range(draw(st.integers(1, 7))):
        writes = draw(st.lists(st.sampled_from(fields), unique=True, max_size=3))
        reads = draw(st.lists(st.sampled_from(fields), unique=True, max_size=2))
        over = draw(st.sampled_from(("node", "node", "map", "loop")))
        nodes.append(
            {
                "seconds": draw(st.lists(st.integers(0, 9), min_size=3, max_size=3)),
                "writes": writes,
                "reads": reads,
                "over": over if "last" not in writes else "node",
                "number": number,
            }
        )
    return nodes


FIELDS: Mapping[str, Any] = {
    "items": {"type": ["string"], "reduce": "append"},
    "total": {"type": "integer", "reduce": "add"},
    "high": {"type": "integer", "reduce": "max"},
    "table": {"type": "object", "reduce": "merge"},
    "last": "string",
}


def document_of(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """The workflow: a writer waits for the readers and the unreduced writers before it."""
    made: dict[str, Any] = {}
    for node in nodes:
        name, before = f"n{node['number']}", nodes[: node["number"]]
        after = [f"n{b['number']}" for b in before if set(b["reads"]) & set(node["writes"])]
        if "last" in node["writes"]:
            after += [f"n{b['number']}" for b in before if "last" in b["writes"]]
        step: dict[str, Any] = {
            "tool": "wait",
            "with": {"number": node["number"], "index": 0, "seconds": node["seconds"][0]},
            "writes": {field: _written(field) for field in node["writes"]},
        }
        step["with"]["seen"] = {field: f"{{{{ state.{field} }}}}" for field in node["reads"]}
        if node["over"] == "map":
            step["with"] |= {"index": "{{ index }}", "seconds": "{{ s }}"}
            step = {"map": node["seconds"], "as": "s", "do": step}
        if node["over"] == "loop":
            step["with"] |= {"index": "{{ iteration - 1 }}"}
            step = {"loop": step, "as": "v", "until": "{{ v.index == 2 }}", "max": 5}
        made[name] = {**step, "after": sorted(set(after))}
    return {
        "name": "random",
        "tools": {"wait": "./tools.py:wait"},
        "state": dict(FIELDS),
        "nodes": made,
        "outputs": {"seen": {f"n{n['number']}": f"{{{{ n{n['number']} }}}}" for n in nodes}},
    }


def _written(field: str) -> Any:
    number, text = "{{ value.number * 10 + value.index }}", "n{{ value.number }}-{{ value.index }}"
    return {"items": text, "last": text, "table": {"at": text}}.get(field, number)


def oracle(nodes: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a program that does one after the other has in the end, and what its nodes saw."""
    state: dict[str, Any] = {"items": [], "total": 0, "high": None, "table": {}, "last": None}
    seen: dict[str, Any] = {}
    for node in nodes:
        times, found, start = 1 if node["over"] == "node" else 3, [], dict(state)
        for index in range(times):
            view = start if node["over"] == "map" else state
            number, text = node["number"] * 10 + index, f"n{node['number']}-{index}"
            found.append(
                {
                    "number": node["number"],
                    "index": index,
                    "seen": {field: view[field] for field in node["reads"]},
                }
            )
            for field in node["writes"]:
                state[field] = {
                    "items": [*state["items"], text],
                    "total": state["total"] + number,
                    "high": max(state["high"] or 0, number),
                    "table": {**state["table"], "at": text},
                    "last": text,
                }[field]
        seen[f"n{node['number']}"] = found if node["over"] == "map" else found[-1]
    return state, seen


@examples(80)
@given(programs())
def test_the_state_is_that_of_one_node_after_the_other(nodes: list[dict[str, Any]]) -> None:
    clock = FakeClock()

    async def wait(number: int, index: int, seconds: float, seen: Any) -> dict[str, Any]:
        await clock.sleep(seconds)
        return {"number": number, "index": index, "seen": seen}

    flow = weft.loads(json.dumps(document_of(nodes)))
    result = run(flow, clock=clock, models={}, tools=FakeTools(wait=wait))
    assert result.status == "succeeded", result.reasons
    state, seen = oracle(nodes)
    assert result.outputs["seen"] == seen
    assert result.state == state
    assert weft.loads(flow.to_yaml()).document == flow.document


# -- recorded runs -------------------------------------------------------------------------------

RECORDED = """\
  one: {model: small, prompt: one, writes: {notes: "{{ value }}"}}
  items:
    map: [a, b, c]
    as: x
    width: 1
    do: {model: small, prompt: "{{ x }} {{ state.notes[0] }}", writes: {notes: "{{ value }}"}}
  rounds:
    loop:
      nodes:
        step: {model: small, prompt: "{{ state.notes | length }}", writes: {notes: "{{ value }}"}}
      result: {length: "{{ state.notes | length }}"}
    as: n
    until: "{{ n.length > 6 }}"
    max: 9
  last: {model: small, prompt: "{{ state.notes | join(' ') }}"}"""


def slow(request: ModelRequest) -> Reply:
    return Reply(f"<{request.messages[-1].content}>", first_token_s=1.0, per_token_s=0.0)


@pytest.mark.parametrize("left_s", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5])
def test_a_resumed_run_has_the_state_of_an_undisturbed_one(left_s: float) -> None:
    flow = flow_of(RECORDED, 'a: "{{ last }}"')
    whole = House(slow)
    undisturbed = whole.run(flow)
    assert len(undisturbed.state["notes"]) == 7
    house = House(slow)
    assert house.left(flow, left_s).status == "cancelled"
    resumed = house.resume(flow)
    assert resumed.outputs == undisturbed.outputs
    assert resumed.state == undisturbed.state
    assert len(house.asked) - len(whole.asked) <= 1  # what was running when it was left


def test_a_replay_has_the_same_state() -> None:
    flow, house = flow_of(RECORDED, 'a: "{{ last }}"'), House(slow)
    state = house.run(flow).state
    replayed = replay(house.story(), flow.unit)
    assert replayed.ok, replayed.report()
    assert replayed.result.state == state


def test_the_state_is_a_node_of_the_record() -> None:
    house = House(slow)
    result = house.run(flow_of(RECORDED, 'a: "{{ last }}"'))
    assert house.story().outcomes[NodeId("state")].value == result.state


# -- in Python -----------------------------------------------------------------------------------


def test_a_flow_in_python_says_the_same_as_its_file() -> None:
    flow = weft.Flow(
        "notes",
        state={"notes": {"type": list[str], "reduce": "append"}, "count": int, "name": "string"},
    )
    first = flow.value({"text": "a"}, writes={"notes": lambda value: value.text, "count": 1})
    second = flow.value(flow.state.notes, after=first, writes={"name": "{{ value[0] }}!"})
    flow.output(notes=second, all=flow.state)
    result = FakeClock().run(flow.run(durability="none"))
    assert result.outputs == {"notes": ["a"], "all": {"notes": ["a"], "count": 1, "name": "a!"}}
    again = weft.loads(flow.to_yaml())
    assert again.document == flow.document
    assert FakeClock().run(again.run(durability="none")).state == result.state
    assert weft.Flow.of(again.unit).document == flow.document


def test_a_flow_without_a_state_says_so() -> None:
    flow = weft.Flow("none")
    with pytest.raises(BuildError, match="the flow has no state"):
        _ = flow.state
    with pytest.raises(BuildError, match="maps fields of the state"):
        flow.value(1, writes="x")


def test_a_name_of_a_node_may_be_state_where_none_is_declared() -> None:
    flow = loads('  state: {value: 1}\n  a: {value: "{{ state }}"}')
    result = asyncio.run(flow.run(durability="none"))
    assert (result.outputs, result.state) == ({"a": 1}, {})


def test_journal_is_not_needed() -> None:
    clock = FakeClock()
    flow = flow_of('  a: {value: x, writes: {notes: "{{ value }}"}}')
    with_record = clock.run(flow.run(journal=MemoryJournal(clock), clock=clock))
    assert with_record.state == clock.run(flow.run(durability="none", clock=clock)).state
