"""Text of observed runs: the minimal subgraph against a slow oracle; fences that hold; sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import InputError
from weft.evaluation.case import Case
from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.propose.traces import fenced, first_difference, minimal_subgraph, run_text


@st.composite
def dags(draw: st.DrawFn) -> list[ObservedNode]:
    count = draw(st.integers(1, 9))
    return [
        ObservedNode(
            f"n{at}",
            "code",
            needs=tuple(f"n{j}" for j in range(at) if draw(st.booleans())),
        )
        for at in range(count)
    ]


@given(dags(), st.data())
def test_subgraph_is_every_node_with_a_path_to_an_output(
    nodes: list[ObservedNode], data: st.DataObject
) -> None:
    names = [node.node for node in nodes]
    outputs = data.draw(st.lists(st.sampled_from(names), unique=True))
    reach = {(node.node, need) for node in nodes for need in node.needs} | {(n, n) for n in names}
    for middle in names:  # transitive closure
        reach |= {(a, b) for a in names for b in names if {(a, middle), (middle, b)} <= reach}
    expected = [name for name in names if any((out, name) in reach for out in outputs)]
    assert [node.node for node in minimal_subgraph(nodes, outputs)] == expected


@given(st.text("~a\n", max_size=60))
def test_no_text_closes_its_fence(text: str) -> None:
    fence, _, rest = fenced(text).partition("\n")
    inside, _, last = rest.rpartition("\n")
    assert last == fence
    assert inside == text
    assert fence not in inside


def _run(case: str, *nodes: ObservedNode, expected: object = None) -> ObservedRun:
    return ObservedRun(Case(case, {"q": "x" * 5000}, expected), 0, {"a": 1}, 0.0, "unit", nodes)


def test_first_difference_is_that_of_the_value_or_failure() -> None:
    same, bad = ObservedNode("a", "code", value=1), ObservedNode("b", "tool", failure="timeout")
    good = ObservedNode("b", "tool", value=2)
    assert first_difference(_run("1", same, bad), _run("1", same, good)) == bad
    assert first_difference(_run("1", same, good), _run("1", same, good)) is None
    with pytest.raises(InputError, match="two cases"):
        first_difference(_run("1", same), _run("2", same))


def test_text_is_bounded_and_does_not_show_the_expected_answer() -> None:
    node = ObservedNode("b", "tool", inputs={"q": "y" * 5000}, failure="timeout " * 999)
    text = run_text(_run("1", node, expected="the-gold"), [node], limit=100)
    assert len(text) < 1200
    assert "the-gold" not in text
    assert "timeout" in text
    assert "unit" in text
