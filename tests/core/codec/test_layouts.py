"""Records as lists of fields: what is in journals keeps its meaning, and nothing is lost."""

from __future__ import annotations

import dataclasses
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.codec.test_codec import NODE, Apart, shape
from tests.core.codec.values import SEEDS, instance
from weft.core.calls import CallId, ToolCalled, ToolReturned
from weft.core.codec import decode_all, encode, encode_all
from weft.core.codec.classes import LAYOUTS, NUMBERED
from weft.core.codec.encoder import quickly
from weft.core.codec.sink import Sink
from weft.core.codec.writer import list_writer
from weft.core.errors import StoreError
from weft.core.events import GraphGrew, NodeFinished, NodeInfo, NodeLogged, NodeStarted, Outcome
from weft.core.ids import NodeId

QUICK = (NodeStarted, NodeFinished, ToolCalled, ToolReturned)
CALLED = ToolCalled(NODE, 1, CallId("tool:0#0"), "f", {"x": 1}, "pure", "", 0.5)


def test_the_layouts_are_those_that_journals_have() -> None:
    assert {cls.__name__: (layout.number, *layout.fields) for cls, layout in LAYOUTS.items()} == {
        "NodeStarted": (1, "node", "attempt", "at_s", "digest"),
        "NodeFinished": (
            *(2, "node", "outcome", "at_s", "recalled"),
            *("digest", "run_ended", "by_name"),
        ),
        "Outcome": (3, "status", "value", "failure", "attempts", "via"),
        "ToolCalled": (
            *(4, "node", "attempt", "call", "tool", "arguments"),
            *("effect", "key", "at_s", "stands_for"),
        ),
        "ToolReturned": (5, "node", "attempt", "call", "value", "failure", "done", "at_s", "cause"),
        "NodeInfo": (
            *(6, "id", "kind", "parent", "sources", "resource", "may_fail", "weight", "spends"),
            *("attempts", "join", "quorum", "cancels", "streams"),
        ),
        "NodeSpent": (7, "node", "usage", "at_s", "recalled"),
        "NodeWaiting": (8, "node", "at_s"),
        "GraphGrew": (
            *(9, "parent", "nodes", "at_s", "results", "join"),
            *("quorum", "width", "items", "more"),
        ),
    }, "only ever add fields at the end, and classes with new numbers"


@pytest.mark.parametrize("cls", LAYOUTS)
def test_a_layout_has_every_field_and_those_that_are_needed_first(cls: Any) -> None:
    names = {field.name for field in dataclasses.fields(cls)}
    assert set(LAYOUTS[cls].fields) == names
    assert len(LAYOUTS[cls].fields) == len(names)
    assert NUMBERED[LAYOUTS[cls].number] is cls


@given(SEEDS)
def test_every_record_with_a_layout_comes_back(seed: int) -> None:
    rng, apart = Random(seed), Apart()
    values = [instance(cls, rng) for cls in LAYOUTS]
    for text, get in ((encode_all(values), None), (encode_all(values, apart.keep), apart.get)):
        again = decode_all(text, get)
        kept = [decode_all(f"[{encode(value)}]")[0] for value in values]
        assert [shape_of(value) for value in again] == [shape_of(value) for value in kept]


def shape_of(value: Any) -> Any:
    """The fields with their types."""
    return type(value), [shape(getattr(value, f.name)) for f in dataclasses.fields(value)]


@given(SEEDS)
def test_the_quick_way_writes_what_the_other_does(seed: int) -> None:
    rng = Random(seed)
    for cls in QUICK:
        for apart in (None, Apart().keep):
            record, sink = instance(cls, rng), Sink(apart, as_lists=True)
            usual = f"[{LAYOUTS[cls].number},{list_writer(cls)(record, sink)[1:]}"
            assert quickly([record], sink, lambda _, __: "") in ([""], [usual])


@pytest.mark.parametrize(
    "record",
    [
        NodeStarted(NODE, 1, 0.25, "ab" * 16),
        CALLED,
        ToolReturned(NODE, 1, CallId("tool:0#0"), [1, "a"], None, "done", 0.5),
        NodeFinished(NODE, Outcome("succeeded", {"a": None}), 0.75),
    ],
)
def test_what_every_node_leaves_takes_the_quick_way(record: Any) -> None:
    assert quickly([record], Sink(None, as_lists=True), lambda _, __: "") != [""]


def test_a_node_of_one_tool_call_leaves_so_many_bytes() -> None:
    node, digest = NodeId("h_52"), "4c" * 16
    call = CallId("tool:fb1a23defdef#0")
    records = [
        NodeStarted(node, 1, 0.123456789, digest),
        ToolCalled(node, 1, call, "step", {"x": 0}, "pure", "", 0.123456789),
        ToolReturned(node, 1, call, 0, None, "done", 0.123456789),
        NodeFinished(node, Outcome("succeeded", 0), 0.123456789),
    ]
    assert len(encode_all(records)) == 233


def test_records_of_an_earlier_weft_are_read_beside_new_ones() -> None:
    old = json.loads(encode(CALLED))
    new = json.loads(encode_all([CALLED]))
    assert "~" in old
    assert decode_all(json.dumps([old, *new, old])) == [CALLED] * 3


def test_a_value_that_comes_again_is_written_once() -> None:
    apart, kept = Apart(), []

    def keep(text: str) -> str:
        kept.append(text)
        return apart.keep(text)

    for value in ("long " * 200, {"rows": ["row " * 80] * 2}, ["long " * 200]):
        kept.clear()
        records = [
            ToolReturned(NODE, 1, CallId("tool:0#0"), value, None, "done", 1.0),
            NodeFinished(NODE, Outcome("succeeded", value), 1.5),
        ]
        once = encode_all(records[:1], keep)
        pieces = len(kept)
        text = encode_all(records, keep)
        assert len(kept) == 2 * pieces
        assert decode_all(text, apart.get) == records
        assert decode_all(once, apart.get) == records[:1]


def test_many_nodes_are_kept_in_few_pieces_and_once() -> None:
    apart = Apart()
    names = tuple(NodeId(f"m[{index}]") for index in range(1000))
    grown = GraphGrew(
        NodeId("m"), tuple(NodeInfo(n, "tool", parent=NodeId("m")) for n in names), 1.0, names
    )
    text = encode_all([grown], apart.keep)
    assert decode_all(text, apart.get) == [grown]
    assert len(apart.texts) < 12
    before = len(apart.texts)
    encode_all([dataclasses.replace(grown, at_s=2.0)], apart.keep)
    assert len(apart.texts) == before


@pytest.mark.parametrize(
    "record",
    [
        NodeStarted(NODE, "1", 0.0),  # type: ignore[arg-type]
        NodeStarted(7, 1, 0.0),  # type: ignore[arg-type]
        NodeStarted(NODE, 1, "now"),  # type: ignore[arg-type]
        dataclasses.replace(CALLED, effect="magic"),  # type: ignore[arg-type]
        NodeFinished(NODE, "over", 0.0),  # type: ignore[arg-type]
    ],
)
def test_what_its_class_does_not_allow_is_not_written(record: Any) -> None:
    with pytest.raises(StoreError, match="cannot be kept"):
        encode_all([record])


@pytest.mark.parametrize(
    "text",
    [
        "[[]]",
        "[[99,1]]",
        '[["NodeStarted","n",1,0.0]]',
        "[[true,1]]",
        '[[1,"n",1]]',
        '[[1,"n",1,0.0,"d",5]]',
        '[[2,"n",["succeeded",1,null,1,"",0],0.0]]',
        '[[2,"n",[3,"succeeded"],0.0]]',
        '[{"~":"NodeLogged","node":["n"],"text":"","at_s":0.0}]',
    ],
)
def test_a_list_that_no_weft_wrote_is_a_typed_error(text: str) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        decode_all(text)


def test_a_record_without_a_layout_is_an_object() -> None:
    assert json.loads(encode_all([NodeLogged(NODE, "a", 1.0)]))[0]["~"] == "NodeLogged"


@given(st.dictionaries(st.text(max_size=9), st.integers() | st.text() | st.none(), max_size=20))
def test_arguments_are_written_the_quick_way_as_the_other(arguments: dict[str, Any]) -> None:
    for keep in (None, Apart().keep):
        record, sink = dataclasses.replace(CALLED, arguments=arguments), Sink(keep, as_lists=True)
        usual = f"[4,{list_writer(ToolCalled)(record, Sink(keep, as_lists=True))[1:]}"
        assert quickly([record], sink, lambda _, __: "") == [usual]


@given(SEEDS)
def test_nodes_are_written_the_quick_way_as_the_other(seed: int) -> None:
    rng = Random(seed)
    infos = [instance(NodeInfo, rng) for _ in range(3)]
    infos += [NodeInfo(i.id, i.kind, i.sources, i.resource, i.parent) for i in infos]
    for info in infos:
        usual = list_writer(NodeInfo)(info, Sink(None, as_lists=True))
        text = encode_all([GraphGrew(NODE, (info,), 1.0)])
        assert text == f"[[9,{json.dumps(NODE)},[{usual}],1.0]]"
