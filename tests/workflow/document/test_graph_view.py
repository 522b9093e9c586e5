"""Drawings: what is in them, and Mermaid text that no label can break."""

from __future__ import annotations

import re

import pytest

import weft
from tests.golden_files import assert_golden
from tests.workflow.case import WHOLE, loads
from weft.workflow import GraphView, ViewEdge, ViewNode
from weft.workflow.document.graph_view import mermaid


def test_the_whole_example(pytestconfig: pytest.Config) -> None:
    golden = pytestconfig.rootpath / "tests" / "golden" / "workflow_everything.mmd"
    assert_golden(golden, weft.load(WHOLE / "everything.yaml").mermaid())


def test_bodies_are_groups_and_what_they_need_their_node_needs() -> None:
    view = loads(
        """\
  b: {value: 1}
  c: {value: 2, after: b}
  a:
    map: "{{ [b] }}"
    do:
      nodes:
        x: {branch: "{{ item }}", cases: {y: {value: "{{ c }}"}, default: {value: 1}}}
        z: {value: "{{ x }}", after: [c]}
      result: "{{ z }}"
    fallback: d
    degrade: d
  d: {value: 3}"""
    ).graph_view()
    assert [node.id for node in view.nodes] == ["b", "c", "a", "d"]
    assert view.edges == (
        ViewEdge("b", "c", "after"),
        ViewEdge("b", "a"),
        ViewEdge("c", "a"),
        ViewEdge("a", "d", "fallback"),
        ViewEdge("a", "d", "degrade"),
    )
    body = view.nodes[2].inside
    assert body is not None
    assert [(node.id, node.label, node.kind) for node in body.nodes] == [
        ("a/x", "x", "branch"),
        ("a/z", "z", "value"),
    ]
    assert body.edges == (ViewEdge("a/x", "a/z"),)
    assert [case for case, _ in body.nodes[0].groups] == ["y", "default"]
    assert body.nodes[0].groups[0][1].nodes[0].id == "a/x/y/value"


@pytest.mark.parametrize(
    "label",
    [
        'a"] --> b["c',
        "end",
        "<script>alert(1)</script>",
        "a\nb",
        "`x`",
        "#quot;",
        "%%{init: {}}%%",
        "click a href",
        "x" * 500,
        "日本",
    ],
)
def test_hostile_labels(label: str) -> None:
    inner = GraphView((ViewNode(f"a/{label}", label, label),))
    view = GraphView(
        (ViewNode(label, label, "tool"), ViewNode("a", "a", label, inner, ((label, inner),))),
        (ViewEdge(label, "a"),),
    )
    for line in mermaid(view).splitlines()[1:]:
        assert re.fullmatch(
            r"\s*(n_\w+ (-->|-\.->) n_\w+"
            r'|n_\w+\["[\w .#;-]*(<br/>)?[\w .#;-]*"\]'
            r'|subgraph n_\w+\["[\w .#;()-]*"\]'
            r"|end)",
            line,
        ), line


def test_every_path_has_an_identifier_of_its_own() -> None:
    paths = ["a/b", "a_b", "a b", "a.b"]
    text = mermaid(GraphView(tuple(ViewNode(path, path, "x") for path in paths)))
    ids = re.findall(r"^\s+(n_\w+)\[", text, re.MULTILINE)
    assert len(set(ids)) == len(paths)
